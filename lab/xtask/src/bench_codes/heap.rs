//! Peak memory of a piece of work.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, with a count only on request: timed work must not pay for counting.
struct CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[derive(Clone, Copy, Default)]
struct Count {
    /// Bytes allocated minus bytes freed since counting began; negative if older memory is freed.
    held: isize,
    peak: isize,
}

thread_local! {
    /// The count of this thread; `None` unless requested. It does not allocate itself: it is constant and has no
    /// destructor.
    static COUNT: Cell<Option<Count>> = const { Cell::new(None) };
}

/// Returns the result of `work`, and its peak of allocated bytes. Only this thread is counted: none of the codes uses a
/// second one.
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

#[expect(unsafe_code, reason = "an allocator is an unsafe trait; this one forwards to the system's")]
// SAFETY: every call is forwarded to `System`, and its result returned.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller meets the contract of `alloc`, which is that of `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: as for `alloc`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: the memory is from `System`, like all of this allocator's.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Moved memory exists twice for a moment; the system moves large blocks by its page tables.
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
    fn peak_counts_simultaneous_memory() {
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
        assert_eq!(moved, 300, "moved memory counts once");
        let before = take(1000);
        let ((), after) = peak(|| drop((before, take(500))));
        assert_eq!(after, 500);
        drop(take(2000));
        assert!(COUNT.get().is_none(), "no count requested");
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
