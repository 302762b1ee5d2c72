//! A program that links the engine may have an allocator of its own.
#![allow(clippy::unwrap_used)]
#![expect(unsafe_code, reason = "an allocator is unsafe to write")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use wardround_engine::chat::{ChatTemplate, Message};

static TAKEN: AtomicUsize = AtomicUsize::new(0);

struct Own;

// SAFETY: both calls are handed on as they came.
unsafe impl GlobalAlloc for Own {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        TAKEN.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are those that are asked for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Own = Own;

#[test]
fn a_program_with_an_allocator_of_its_own_renders_a_template() {
    let folder = tempfile::tempdir().unwrap();
    let template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}";
    std::fs::write(folder.path().join("chat_template.jinja"), template).unwrap();
    let before = TAKEN.load(Ordering::Relaxed);
    let chat = ChatTemplate::load(folder.path()).unwrap();
    let text = chat.render(&[Message::new("user", "How are you?")], false).unwrap();
    assert_eq!(text, "<user>How are you?");
    assert!(TAKEN.load(Ordering::Relaxed) > before);
}
