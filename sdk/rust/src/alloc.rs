use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;

/// The allocator of guests whose memory is put back after each call: it gives out one
/// piece after the other, and takes back only the last one. [`plugin!`](crate::plugin)
/// chooses it; it is 5 KB smaller than the standard library's.
pub struct Bump {
    next: Cell<usize>,
    end: Cell<usize>,
}

// SAFETY: WebAssembly without threads has one.
unsafe impl Sync for Bump {}

const PAGE: usize = 64 << 10;

unsafe extern "C" {
    /// Where the linker says that the heap begins.
    static __heap_base: u8;
}

impl Bump {
    /// An allocator that has given nothing out.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Bump {
        Bump { next: Cell::new(0), end: Cell::new(0) }
    }

    /// Makes the memory reach to `end`, and reports whether it does.
    fn reach(&self, end: usize) -> bool {
        if end <= self.end.get() {
            return true;
        }
        let pages = core::arch::wasm32::memory_size::<0>();
        let missing = end.div_ceil(PAGE).saturating_sub(pages);
        if missing > 0 && core::arch::wasm32::memory_grow::<0>(missing) == usize::MAX {
            return false;
        }
        self.end.set((pages + missing) * PAGE);
        true
    }

    fn is_last(&self, ptr: *mut u8, size: usize) -> bool {
        ptr as usize + size == self.next.get()
    }
}

// SAFETY: pieces do not overlap, as `next` only passes over what was given out, and goes
// back over no more than the last piece.
unsafe impl GlobalAlloc for Bump {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if self.next.get() == 0 {
            self.next.set(&raw const __heap_base as usize);
        }
        let start = self.next.get().checked_next_multiple_of(layout.align());
        let Some((start, end)) = start.and_then(|s| Some((s, s.checked_add(layout.size())?))) else {
            return core::ptr::null_mut();
        };
        if !self.reach(end) {
            return core::ptr::null_mut();
        }
        self.next.set(end);
        start as *mut u8
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        if self.is_last(ptr, layout.size()) {
            self.next.set(ptr as usize);
        }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if self.is_last(ptr, layout.size()) {
            let end = (ptr as usize).checked_add(size);
            return match end {
                Some(end) if self.reach(end) => {
                    self.next.set(end);
                    ptr
                }
                _ => core::ptr::null_mut(),
            };
        }
        if size <= layout.size() {
            return ptr;
        }
        // SAFETY: the caller promises that the layout is valid for the new size.
        unsafe {
            let new = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !new.is_null() {
                core::ptr::copy_nonoverlapping(ptr, new, layout.size());
            }
            new
        }
    }
}
