// @ts-check
// Tables. On a narrow screen a row is a card with the column name at every cell (style.css); roles keep the structure
// of a table.
import { element } from "./wire.js";

/** The order of texts: `fig 9` before `fig 10`. */
const ORDER = new Intl.Collator("en", { numeric: true });

/**
 * @typedef {{ id: string, name: string, isNumber?: boolean }} Column
 * @typedef {{ row: HTMLTableRowElement, keys: (string | number)[] }} Sorted a row, and its sort key in each column
 */

/**
 * Makes a table of rows that have a cell for each column.
 * @param {string[]} columns
 * @param {HTMLTableRowElement[]} rows
 * @param {{ kind?: string, caption?: string }} [of]
 */
export function table(columns, rows, { kind = "", caption } = {}) {
  return cards(kind, columns.map((name) => element("th", { scope: "col", role: "columnheader" }, name)),
    element("tbody", { role: "rowgroup" }, ...rows.map((row) => card(row, columns))), caption);
}

/**
 * @param {string} kind
 * @param {HTMLElement[]} heads
 * @param {HTMLElement} body
 * @param {string} [caption]
 */
function cards(kind, heads, body, caption) {
  return element("table", { class: `cards ${kind}`, role: "table" }, ...(caption ? [element("caption", {}, caption)] : []),
    element("thead", { role: "rowgroup" }, element("tr", { role: "row" }, ...heads)), body);
}

/** @param {HTMLTableRowElement} row @param {string[]} columns */
function card(row, columns) {
  row.setAttribute("role", "row");
  [...row.cells].forEach((cell, at) => {
    cell.setAttribute("role", cell.scope === "row" ? "rowheader" : "cell");
    cell.dataset.column = columns[at];
  });
  return row;
}

/** A table ordered by the column whose head is pressed; a second press reverses the order. */
export class Sortable {
  /** The id of the column, with a minus for descending order; empty: the original order. */
  sort = "";
  /** @type {Sorted[]} */
  #rows = [];
  #body = element("tbody", { role: "rowgroup" });

  /**
   * @param {string} kind
   * @param {Column[]} columns
   * @param {() => void} changed the order was, by the reader
   */
  constructor(kind, columns, changed) {
    this.columns = columns;
    this.heads = columns.map((column) => element("th", { scope: "col", role: "columnheader" }, element("button", {
      class: "sort", click: () => {
        this.#press(column);
        this.#order();
        changed();
      },
    }, column.name)));
    this.element = cards(`${kind} sortable`, this.heads, this.#body);
  }

  /** @param {Sorted[]} rows */
  show(rows) {
    this.#rows = rows;
    for (const { row } of rows) card(row, this.columns.map((column) => column.name));
    this.#order();
  }

  /** @param {Column} column */
  #press({ id, isNumber }) {
    const [first, second] = isNumber ? [`-${id}`, id] : [id, `-${id}`];
    this.sort = this.sort === first ? second : first;
  }

  #order() {
    const isDown = this.sort.startsWith("-");
    const at = this.columns.findIndex(({ id }) => id === this.sort.slice(isDown ? 1 : 0));
    this.heads.forEach((head, column) => {
      if (column === at) head.setAttribute("aria-sort", isDown ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    const rows = at < 0 ? this.#rows : [...this.#rows].sort((one, other) => (isDown ? -1 : 1) * order(one.keys[at], other.keys[at]));
    this.#body.replaceChildren(...rows.map(({ row }) => row));
  }
}

/** @param {string | number} one @param {string | number} other */
function order(one, other) {
  return typeof one === "number" && typeof other === "number" ? one - other : ORDER.compare(String(one), String(other));
}
