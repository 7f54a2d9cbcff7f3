//! How much memory a piece of work has at most.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};

/// The system's allocator, and a count while somebody wants one: what is timed must not pay for counting.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static COUNTS: AtomicBool = AtomicBool::new(false);
/// Bytes taken less bytes given back since counting began; less than none where older memory is given back.
static HELD: AtomicIsize = AtomicIsize::new(0);
static PEAK: AtomicIsize = AtomicIsize::new(0);

/// What `work` returns, and the bytes that it had allocated at one time at most, beyond what was there before. All threads count, and
/// only one may ask.
pub(super) fn peak<R>(work: impl FnOnce() -> R) -> (R, usize) {
    HELD.store(0, Ordering::Relaxed);
    PEAK.store(0, Ordering::Relaxed);
    COUNTS.store(true, Ordering::Relaxed);
    let result = work();
    COUNTS.store(false, Ordering::Relaxed);
    (result, PEAK.load(Ordering::Relaxed).cast_unsigned())
}

fn count(taken: usize, given: usize) {
    if COUNTS.load(Ordering::Relaxed) {
        // No layout is larger than isize::MAX.
        let change = taken.cast_signed() - given.cast_signed();
        let held = HELD.fetch_add(change, Ordering::Relaxed) + change;
        PEAK.fetch_max(held, Ordering::Relaxed);
    }
}

#[expect(unsafe_code, reason = "an allocator is unsafe to be; this one hands everything on to the system's")]
// SAFETY: every call goes to `System` as it came, and what that returns goes back.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller keeps to the contract of `alloc`, which is that of `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: as for `alloc`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: the memory came from `System`, since all of this allocator's does.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Memory that is moved is there twice for a moment; the system moves what is large by its page tables.
        count(size, layout.size());
        // SAFETY: as for `dealloc`.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_what_was_held_at_once() {
        // Other tests allocate meanwhile: far less than this.
        let ((), peak) = peak(|| {
            drop(std::hint::black_box(vec![1_u8; 100_000_000]));
            drop(std::hint::black_box(vec![1_u8; 60_000_000]));
        });
        assert!((100_000_000..140_000_000).contains(&peak), "{peak}");
        drop(std::hint::black_box(vec![1_u8; 200_000_000]));
        assert!(PEAK.load(Ordering::Relaxed) < 140_000_000, "nobody asked");
    }
}
