// A fiber's stack, and the switch from one to another.
#pragma once

#include <cstddef>
#include <cstdint>

#ifndef __x86_64__
#include <ucontext.h>
#endif

namespace emulator {

// Untouched pages cost nothing. The odd lines keep the tops of the stacks out of one another's cache sets.
constexpr size_t stack_bytes = 65536 + 17 * 64;

#ifdef __x86_64__
using Stack = void *;

// Keeps what a call must preserve on the stack left, and takes it from the one entered.
__attribute__((naked, noinline)) inline void switch_stack(Stack *, const Stack *) {
    asm("pushq %rbp\n pushq %rbx\n pushq %r12\n pushq %r13\n pushq %r14\n pushq %r15\n"
        "movq %rsp, (%rdi)\n movq (%rsi), %rsp\n"
        "popq %r15\n popq %r14\n popq %r13\n popq %r12\n popq %rbx\n popq %rbp\n ret");
}

// `run` is entered by the first switch, as if called: six registers and its address lie on the stack.
inline void prepare_stack(Stack *stack, unsigned char *memory, void (*run)()) {
    const uintptr_t top = (reinterpret_cast<uintptr_t>(memory) + stack_bytes) / 16 * 16;
    void **bottom = reinterpret_cast<void **>(top) - 8;
    bottom[6] = reinterpret_cast<void *>(run);
    *stack = bottom;
}
#else
using Stack = ucontext_t;

inline void switch_stack(Stack *left, const Stack *entered) { swapcontext(left, entered); }

inline void prepare_stack(Stack *stack, unsigned char *memory, void (*run)()) {
    getcontext(stack);
    stack->uc_stack.ss_sp = memory;
    stack->uc_stack.ss_size = stack_bytes;
    makecontext(stack, run, 0);
}
#endif

}  // namespace emulator
