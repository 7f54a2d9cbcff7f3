//! A congestion control of the kernel's TCP whose window only grows (lt-tcp §2.3): three programs of a few
//! instructions, the functions of a `tcp_congestion_ops` of the kernel (BPF struct_ops).
//!
//! The window grows as Reno's: by the acknowledged packets until the first loss, then by a packet in each round trip.
//! It does not fall with a loss, and never has to be restored. After a retransmission timeout TCP itself sets it to one
//! packet and starts slow start again, whatever the controller returns.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};

use super::call::check;

/// Its name in the kernel.
pub(crate) const NAME: &str = "lab_grow_only";

/// The types of the kernel, with the offsets of fields.
pub(crate) const BTF: &str = "/sys/kernel/btf/vmlinux";

/// Commands of bpf(2), and constants of its attributes (`linux/bpf.h`).
const MAP_CREATE: u32 = 0;
const MAP_UPDATE_ELEM: u32 = 2;
const PROG_LOAD: u32 = 5;
const BTF_LOAD: u32 = 18;
const LINK_CREATE: u32 = 28;
const MAP_TYPE_STRUCT_OPS: u32 = 26;
const PROG_TYPE_STRUCT_OPS: u32 = 27;
const ATTACH_STRUCT_OPS: u32 = 44;
const FLAG_LINK: u32 = 1 << 13;

/// Loads the controller: sockets can choose it by [`NAME`] while this value exists, and keep it afterwards.
///
/// # Errors
/// `PermissionDenied` without `CAP_BPF` and `CAP_NET_ADMIN`, `NotFound` or `Unsupported` where the kernel has no BTF or
/// no such types, `AlreadyExists` while another process has loaded it.
pub(crate) fn load() -> io::Result<OwnedFd> {
    let types = Types::read(fs::read(BTF)?).ok_or(io::ErrorKind::Unsupported)?;
    let layout = types.layout().ok_or(io::ErrorKind::Unsupported)?;
    let functions = [("ssthresh", keep(&layout)), ("undo_cwnd", keep(&layout)), ("cong_avoid", grow(&layout))];
    let mut value = vec![0; layout.size];
    let mut programs = Vec::new();
    for (name, code) in functions {
        let &(_, index, at) =
            layout.functions.iter().find(|(member, ..)| member == name).ok_or(io::ErrorKind::Unsupported)?;
        let program = load_program(name, &code, layout.operations, index)?;
        put(&mut value, at, &(program.as_raw_fd() as u64).to_ne_bytes())?;
        programs.push(program);
    }
    put(&mut value, layout.name, NAME.as_bytes())?;
    let map = create_map(&layout)?;
    update_map(&map, &value)?;
    let link = bpf(LINK_CREATE, &attributes(&[map.as_raw_fd() as u32, 0, ATTACH_STRUCT_OPS, 0]))?;
    descriptor(link)
}

/// `return tcp_sk(sk)->snd_cwnd`.
fn keep(layout: &Layout) -> Vec<u8> {
    [load_double(1, 1, 0), load_word(0, 1, layout.window), EXIT].concat()
}

/// Below `snd_ssthresh`, `snd_cwnd += acked`. Above it, `snd_cwnd_cnt += acked`, and one packet more for each
/// window of them.
fn grow(layout: &Layout) -> Vec<u8> {
    let &Layout { window, threshold, count, .. } = layout;
    // Registers: 1 the socket, 2 the acknowledged packets, 3 the window, 4 the threshold and then the count.
    [
        // The third argument of cong_avoid(sk, ack, acked).
        load_word(2, 1, 16),
        load_double(1, 1, 0),
        load_word(3, 1, window),
        load_word(4, 1, threshold),
        jump_if_below(3, 4, 8),
        load_word(4, 1, count),
        add(4, 2),
        jump_if_below(4, 3, 3),
        instruction(0xb7, 4, 0, 0, 0),
        instruction(0x07, 3, 0, 0, 1),
        store_word(1, window, 3),
        store_word(1, count, 4),
        instruction(0x05, 0, 0, 2, 0),
        add(3, 2),
        store_word(1, window, 3),
        instruction(0xb7, 0, 0, 0, 0),
        EXIT,
    ]
    .concat()
}

const EXIT: [u8; 8] = instruction(0x95, 0, 0, 0, 0);

const fn add(to: u8, from: u8) -> [u8; 8] {
    instruction(0x0f, to, from, 0, 0)
}

const fn jump_if_below(one: u8, other: u8, by: i16) -> [u8; 8] {
    instruction(0xad, one, other, by, 0)
}

const fn store_word(to: u8, at: i16, from: u8) -> [u8; 8] {
    instruction(0x63, to, from, at, 0)
}

const fn load_word(to: u8, from: u8, at: i16) -> [u8; 8] {
    instruction(0x61, to, from, at, 0)
}

const fn load_double(to: u8, from: u8, at: i16) -> [u8; 8] {
    instruction(0x79, to, from, at, 0)
}

const fn instruction(operation: u8, to: u8, from: u8, at: i16, number: i32) -> [u8; 8] {
    let ([a, b], [c, d, e, f]) = (at.to_ne_bytes(), number.to_ne_bytes());
    let registers = if cfg!(target_endian = "little") { from << 4 | to } else { to << 4 | from };
    [operation, registers, a, b, c, d, e, f]
}

fn load_program(name: &str, code: &[u8], operations: u32, index: u32) -> io::Result<OwnedFd> {
    let license = *b"GPL\0";
    let mut attributes = attributes(&[PROG_TYPE_STRUCT_OPS, (code.len() / 8) as u32]);
    attributes.extend((code.as_ptr() as u64).to_ne_bytes());
    attributes.extend((license.as_ptr() as u64).to_ne_bytes());
    attributes.resize(48, 0);
    attributes.extend(name.as_bytes());
    attributes.resize(68, 0);
    attributes.extend(index.to_ne_bytes());
    attributes.resize(108, 0);
    attributes.extend(operations.to_ne_bytes());
    descriptor(bpf(PROG_LOAD, &attributes)?)
}

fn create_map(layout: &Layout) -> io::Result<OwnedFd> {
    let types = load_types()?;
    let mut attributes = attributes(&[MAP_TYPE_STRUCT_OPS, 4, layout.size as u32, 1, FLAG_LINK]);
    attributes.resize(28, 0);
    attributes.extend(NAME.as_bytes());
    attributes.resize(48, 0);
    attributes.extend((types.as_raw_fd() as u32).to_ne_bytes());
    attributes.resize(60, 0);
    attributes.extend(layout.value.to_ne_bytes());
    descriptor(bpf(MAP_CREATE, &attributes)?)
}

/// Loads types of our own, which the kernel requires for such a map but does not use: one integer.
fn load_types() -> io::Result<OwnedFd> {
    let strings = *b"\0int\0";
    let integer = [1u32, 1 << 24, 4, 32];
    let mut types = Vec::from(0xeb9f_u16.to_ne_bytes());
    types.extend([1, 0]);
    for word in [24, 0, 16, 16, strings.len() as u32].into_iter().chain(integer) {
        types.extend(word.to_ne_bytes());
    }
    types.extend(strings);
    let mut attributes = Vec::from((types.as_ptr() as u64).to_ne_bytes());
    attributes.extend(0u64.to_ne_bytes());
    attributes.extend((types.len() as u32).to_ne_bytes());
    descriptor(bpf(BTF_LOAD, &attributes)?)
}

fn update_map(map: &OwnedFd, value: &[u8]) -> io::Result<()> {
    let key = 0u32.to_ne_bytes();
    let mut attributes = attributes(&[map.as_raw_fd() as u32, 0]);
    attributes.extend((key.as_ptr() as u64).to_ne_bytes());
    attributes.extend((value.as_ptr() as u64).to_ne_bytes());
    attributes.extend(0u64.to_ne_bytes());
    bpf(MAP_UPDATE_ELEM, &attributes).map(drop)
}

fn attributes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// Calls bpf(2). Pointers in the attributes are to buffers of the caller, which the kernel only reads.
fn bpf(command: u32, attributes: &[u8]) -> io::Result<RawFd> {
    // A size above the kernel's is allowed if the rest is zero.
    let mut all = [0u8; 160];
    put(&mut all, 0, attributes)?;
    // SAFETY: the kernel reads `all` and the buffers that it points to.
    check(unsafe { libc::syscall(libc::SYS_bpf, command, all.as_ptr(), all.len()) } as i32)
}

fn descriptor(fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: bpf(2) has just returned it, and it has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn put(into: &mut [u8], at: usize, bytes: &[u8]) -> io::Result<()> {
    let place = into.get_mut(at..at + bytes.len()).ok_or(io::ErrorKind::Unsupported)?;
    place.copy_from_slice(bytes);
    Ok(())
}

/// The required parts of the kernel's types.
struct Layout {
    /// The type `tcp_congestion_ops`.
    operations: u32,
    /// Its functions: name, index, and offset in the value.
    functions: Vec<(String, u32, usize)>,
    /// The offset of its name in the value.
    name: usize,
    /// The type of the map's value, and its bytes.
    value: u32,
    size: usize,
    /// The offsets of `snd_cwnd`, `snd_ssthresh` and `snd_cwnd_cnt` in a `tcp_sock`.
    window: i16,
    threshold: i16,
    count: i16,
}

/// The kernel's types (`Documentation/bpf/btf.rst`).
struct Types {
    strings: Vec<u8>,
    all: Vec<Type>,
}

struct Type {
    kind: u32,
    name: u32,
    /// Its bytes, or the type that it is an alias of.
    size: u32,
    /// Name, type and offset in bytes.
    members: Vec<(u32, u32, usize)>,
}

const STRUCT: u32 = 4;
const UNION: u32 = 5;
/// A typedef, volatile, const, restrict or type tag is an alias of another type.
const ALIASES: [u32; 5] = [8, 9, 10, 11, 18];

impl Types {
    fn read(data: Vec<u8>) -> Option<Self> {
        let word = |at: usize| Some(u32::from_ne_bytes(data.get(at..at + 4)?.try_into().ok()?));
        let section = |offset: usize| {
            let start = word(4)? as usize + word(offset)? as usize;
            Some((start, start + word(offset + 4)? as usize))
        };
        let (mut at, end) = section(8)?;
        let (first, last) = section(16)?;
        let strings = data.get(first..last)?.to_vec();
        // Type 0 is void.
        let mut all = vec![Type { kind: 0, name: 0, size: 0, members: Vec::new() }];
        while at < end {
            let (name, info, size) = (word(at)?, word(at + 4)?, word(at + 8)?);
            let (kind, count, has_bits) = (info >> 24 & 31, (info & 0xffff) as usize, info >> 31 == 1);
            at += 12;
            let mut members = Vec::new();
            if [STRUCT, UNION].contains(&kind) {
                for member in 0..count {
                    let at = at + 12 * member;
                    let bits = word(at + 8)? & if has_bits { 0xff_ffff } else { u32::MAX };
                    members.push((word(at)?, word(at + 4)?, bits as usize / 8));
                }
            }
            at += match kind {
                1 | 14 | 17 => 4,
                3 => 12,
                STRUCT | UNION | 15 | 19 => 12 * count,
                6 | 13 => 8 * count,
                _ => 0,
            };
            all.push(Type { kind, name, size, members });
        }
        Some(Self { strings, all })
    }

    fn name(&self, at: u32) -> &str {
        let text = self.strings.get(at as usize..).unwrap_or_default();
        let end = text.iter().position(|byte| *byte == 0).unwrap_or_default();
        std::str::from_utf8(&text[..end]).unwrap_or_default()
    }

    fn structure(&self, name: &str) -> Option<(u32, &Type)> {
        (0..).zip(&self.all).find(|(_, of)| of.kind == STRUCT && self.name(of.name) == name)
    }

    /// Returns the offset of a field, also within members without a name.
    fn place(&self, of: &Type, field: &str) -> Option<usize> {
        of.members.iter().find_map(|&(name, number, at)| match self.name(name) {
            "" => {
                let mut of = self.all.get(number as usize)?;
                while ALIASES.contains(&of.kind) {
                    of = self.all.get(of.size as usize)?;
                }
                Some(at + self.place(of, field)?)
            }
            name => (name == field).then_some(at),
        })
    }

    fn layout(&self) -> Option<Layout> {
        let (operations, of_operations) = self.structure("tcp_congestion_ops")?;
        let (value, of_value) = self.structure("bpf_struct_ops_tcp_congestion_ops")?;
        let data = self.place(of_value, "data")?;
        let members = (0..).zip(&of_operations.members);
        let functions = members.map(|(index, &(name, _, at))| (self.name(name).to_owned(), index, data + at)).collect();
        let socket = self.structure("tcp_sock")?.1;
        let field = |name: &str| i16::try_from(self.place(socket, name)?).ok();
        Some(Layout {
            operations,
            functions,
            name: data + self.place(of_operations, "name")?,
            value,
            size: of_value.size as usize,
            window: field("snd_cwnd")?,
            threshold: field("snd_ssthresh")?,
            count: field("snd_cwnd_cnt")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_equal_llvm_mc() {
        // As `llvm-mc -triple=bpfel` has them.
        if cfg!(target_endian = "little") {
            let layout = Layout {
                operations: 0,
                functions: Vec::new(),
                name: 0,
                value: 0,
                size: 0,
                window: 1444,
                threshold: 1492,
                count: 1448,
            };
            assert_eq!(
                keep(&layout),
                [0x79, 0x11, 0, 0, 0, 0, 0, 0, 0x61, 0x10, 0xa4, 5, 0, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0]
            );
            assert_eq!(grow(&layout)[32..40], [0xad, 0x43, 8, 0, 0, 0, 0, 0]);
            assert_eq!(grow(&layout)[80..88], [0x63, 0x31, 0xa4, 5, 0, 0, 0, 0]);
        }
    }

    #[test]
    fn invalid_types_are_refused() {
        for length in 0..24 {
            assert!(Types::read(vec![0xff; length]).is_none_or(|types| types.layout().is_none()), "{length}");
        }
        let Ok(data) = fs::read(BTF) else { return };
        let cut = data[..data.len() / 2].to_vec();
        assert!(Types::read(cut).is_none());
        let layout = Types::read(data).and_then(|types| types.layout()).expect("a kernel's own types");
        assert!(layout.window > 0 && layout.functions.iter().any(|(name, ..)| name == "cong_avoid"));
    }
}
