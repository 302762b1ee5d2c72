// In place of kernels/emulator.h, for a check of syntax alone: floats are of a class that has no arithmetic but that of constants, so that
// the compiler refuses what a kernel computes by other means than the intrinsics declared here: nvcc would contract it as it likes.
#pragma once
#define WARDROUND_CHECKED

#include <cmath>
#include <compare>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

struct Opaque {
    float value;

    Opaque() = default;
    template <typename T>
        requires std::is_arithmetic_v<T>
    constexpr Opaque(T value) : value(static_cast<float>(value)) {}

    constexpr explicit operator double() const { return value; }
    constexpr Opaque operator-() const { return -value; }
    friend constexpr bool operator==(Opaque, Opaque) = default;
    friend constexpr auto operator<=>(Opaque, Opaque) = default;
    friend consteval Opaque operator*(Opaque a, Opaque b) { return a.value * b.value; }
    friend consteval Opaque operator/(Opaque a, Opaque b) { return a.value / b.value; }
};

#define float Opaque

Opaque fabsf(Opaque x);
Opaque fminf(Opaque a, Opaque b);
Opaque fmaxf(Opaque a, Opaque b);
Opaque __fmaf_rn(Opaque a, Opaque b, Opaque c);
Opaque __fmul_rn(Opaque a, Opaque b);
Opaque __fadd_rn(Opaque a, Opaque b);
Opaque __fsub_rn(Opaque a, Opaque b);
Opaque __fdiv_rn(Opaque a, Opaque b);
Opaque __fsqrt_rn(Opaque a);

#include "emulator.h"
