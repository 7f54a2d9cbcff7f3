//! How much memory a piece of work has at most.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, and a count while somebody wants one: what is timed must not pay for counting.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[derive(Clone, Copy, Default)]
struct Count {
    /// Bytes taken less bytes given back since counting began; less than none where older memory is given back.
    held: isize,
    peak: isize,
}

thread_local! {
    /// What this thread has taken; nothing while nobody asks. It allocates nothing itself: it is constant and nothing
    /// drops it.
    static COUNT: Cell<Option<Count>> = const { Cell::new(None) };
}

/// What `work` returns, and the bytes that it had allocated at one time at most, beyond what was there before. This
/// thread's count, no other's: none of the codes has a second one.
pub(super) fn peak<R>(work: impl FnOnce() -> R) -> (R, usize) {
    COUNT.set(Some(Count::default()));
    let result = work();
    let peak = COUNT.take().map_or(0, |count| count.peak);
    (result, peak.cast_unsigned())
}

fn count(taken: usize, given: usize) {
    if let Some(Count { held, peak }) = COUNT.get() {
        // No layout is larger than isize::MAX.
        let held = held + taken.cast_signed() - given.cast_signed();
        COUNT.set(Some(Count { held, peak: peak.max(held) }));
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
    use std::hint::black_box;

    fn take(bytes: usize) -> Vec<u8> {
        black_box(Vec::with_capacity(bytes))
    }

    #[test]
    fn the_peak_is_what_was_held_at_once() {
        let in_turns = peak(|| {
            drop(take(1000));
            drop(take(600));
        });
        assert_eq!(in_turns, ((), 1000));
        let at_once = peak(|| (take(1000), take(600)));
        assert_eq!(at_once.1, 1600);
        let (_, moved) = peak(|| {
            let mut bytes = take(100);
            bytes.reserve_exact(300);
            black_box(bytes)
        });
        assert_eq!(moved, 300, "what is moved counts once");
        let before = take(1000);
        let ((), after) = peak(|| drop((before, take(500))));
        assert_eq!(after, 500);
        drop(take(2000));
        assert!(COUNT.get().is_none(), "nobody asks");
    }

    #[test]
    fn other_threads_do_not_count() {
        let (taken, ours) = peak(|| {
            let other = std::thread::spawn(|| take(100_000_000).capacity());
            other.join().expect("it only allocates")
        });
        assert!(taken >= 100_000_000 && ours < 1_000_000, "{ours}");
    }
}
