//! Static shortest paths.

use std::collections::VecDeque;

/// The next link from every vertex to every other.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    vertices: usize,
    /// By destination, then vertex: one search fills one row.
    next: Vec<Option<u32>>,
}

impl Routes {
    /// Computes paths of the fewest links. `links` are (from, to); of equal paths the one whose links were added first
    /// wins, which keeps runs repeatable. Paths pass only through vertices that forward.
    pub(crate) fn new(forwards: &[bool], links: &[(usize, usize)]) -> Self {
        let vertices = forwards.len();
        let mut into: Vec<Vec<(u32, usize)>> = vec![Vec::new(); vertices];
        for (number, &(from, to)) in (0..).zip(links) {
            into[to].push((number, from));
        }
        let mut next = vec![None; vertices * vertices];
        for (destination, row) in next.chunks_mut(vertices.max(1)).enumerate() {
            let mut waiting = VecDeque::from([destination]);
            while let Some(vertex) = waiting.pop_front() {
                if vertex != destination && !forwards[vertex] {
                    continue;
                }
                for &(link, from) in &into[vertex] {
                    if from != destination && row[from].is_none() {
                        row[from] = Some(link);
                        waiting.push_back(from);
                    }
                }
            }
        }
        Self { vertices, next }
    }

    /// Returns the link that leads from `vertex` towards `destination`.
    pub(crate) fn next(&self, vertex: usize, destination: usize) -> Option<usize> {
        if vertex >= self.vertices {
            return None;
        }
        let &next = self.next.get(destination.checked_mul(self.vertices)?.checked_add(vertex)?)?;
        next.map(|link| link as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortest_path_through_forwarding_vertices_only() {
        // 0 - 1 - 2 - 5 over routers, 0 - 3 - 5 shorter over a node that does not forward, 4 alone.
        let forwards = [false, true, true, false, false, false];
        let routes = Routes::new(&forwards, &[(0, 3), (3, 5), (0, 1), (1, 2), (2, 5), (2, 5)]);
        assert_eq!(routes.next(0, 5), Some(2));
        assert_eq!(routes.next(1, 5), Some(3));
        assert_eq!(routes.next(2, 5), Some(4), "of two links the first");
        assert_eq!(routes.next(3, 5), Some(1), "a node may start a path");
        assert_eq!(routes.next(0, 3), Some(0), "and end one");
        assert_eq!(routes.next(0, 4), None);
        assert_eq!(routes.next(5, 0), None, "links have a direction");
        assert_eq!(routes.next(0, 0), None);
        assert_eq!(routes.next(6, 0), None);
        assert_eq!(routes.next(0, usize::MAX), None);
    }
}
