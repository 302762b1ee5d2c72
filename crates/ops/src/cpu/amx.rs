//! AMX's tile registers: whole products of sixteen rows by sixteen columns.
//!
//! The compiler knows nothing of them, so each product is one block of assembly, between a [`Configuration`] being
//! loaded and dropped; nothing else in the process touches them.

use std::arch::asm;

/// Rows of activations, and columns, of a tile.
pub const SIDE: usize = 16;

/// Bytes of a tile's full row.
const ROW_BYTES: usize = 64;

/// The shapes of the eight registers, as the hardware reads them.
#[repr(C, align(64))]
struct Shapes {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    row_bytes: [u16; 16],
    rows: [u8; 16],
}

/// Registers 0 to 3 hold sums, 4 and 5 activations, 6 and 7 weights. Dropping it sets them free.
pub struct Configuration(());

impl Configuration {
    /// For one tile of `first` rows of activations, and another one of `second`, which may be none.
    ///
    /// # Safety
    /// The machine is [`super::Isa::Amx`], and no other configuration of this thread lives.
    pub unsafe fn load(first: usize, second: usize) -> Configuration {
        let second = second.max(1);
        let mut shapes = Shapes {
            palette: 1,
            start_row: 0,
            reserved: [0; 14],
            row_bytes: [0; 16],
            rows: [0; 16],
        };
        for (register, rows) in
            [first, first, second, second, first, second, SIDE, SIDE].into_iter().enumerate()
        {
            shapes.row_bytes[register] = ROW_BYTES as u16;
            shapes.rows[register] = rows as u8;
        }
        // SAFETY: the shapes are valid: at most sixteen rows of 64 bytes each.
        unsafe { asm!("ldtilecfg [{}]", in(reg) &shapes, options(nostack, readonly)) };
        Configuration(())
    }
}

impl Drop for Configuration {
    fn drop(&mut self) {
        // SAFETY: tiles are usable where a configuration was loaded.
        unsafe { asm!("tilerelease", options(nostack, nomem)) };
    }
}

/// A product of activations in bf16, `[inputs / 32][rows][32]`, and tiles of weights, `[inputs / 2][16 columns][2]`.
#[derive(Clone, Copy)]
pub struct Bf16Product {
    pub activations: *const u16,
    /// Bytes of 32 inputs of all rows.
    pub activation_bytes: usize,
    /// One or two tiles of columns; the same twice where it is one.
    pub weights: [*const u16; 2],
    /// 32 inputs each; at least one.
    pub steps: usize,
    /// Where the sums go, and bytes from a row of them to the next.
    pub to: *mut f32,
    pub stride: usize,
}

/// Defines a function that adds up a [`Bf16Product`]: what it does before, at each step, and at the end.
macro_rules! product {
    ($(#[$attribute:meta])* $name:ident: [$($zero:literal)*] [$($step:literal)*] [$($store:literal)*]) => {
        $(#[$attribute])*
        ///
        /// # Safety
        /// A configuration for these rows is loaded, and the pointers are valid for what is read and written.
        pub unsafe fn $name(product: Bf16Product) {
            // SAFETY: the caller vouches for the pointers.
            unsafe {
                asm!(
                    $($zero,)*
                    "2:",
                    $($step,)*
                    "add {a}, {a_bytes}",
                    "add {w0}, 1024",
                    "add {w1}, 1024",
                    "dec {steps}",
                    "jnz 2b",
                    $($store,)*
                    "/* {second} */",
                    a = inout(reg) product.activations => _,
                    a_bytes = in(reg) product.activation_bytes,
                    w0 = inout(reg) product.weights[0] => _,
                    w1 = inout(reg) product.weights[1] => _,
                    line = in(reg) ROW_BYTES,
                    steps = inout(reg) product.steps => _,
                    to = in(reg) product.to,
                    second = in(reg) product.to.wrapping_byte_add(SIDE * product.stride),
                    stride = in(reg) product.stride,
                    options(nostack),
                );
            }
        }
    };
}

product! {
    /// One tile of rows, one of columns.
    multiply_one_by_one:
    ["tilezero tmm0"]
    [
        ".irp line, 0,64,128,192,256,320,384,448,512,576,640,704,768,832,896,960"
        "prefetcht0 [{w0} + 4096 + \\line]"
        ".endr"
        "tileloadd tmm4, [{a} + {line}]"
        "tileloadd tmm6, [{w0} + {line}]"
        "tdpbf16ps tmm0, tmm4, tmm6"
    ]
    ["tilestored [{to} + {stride}], tmm0"]
}

product! {
    /// One tile of rows, two of columns.
    multiply_one_by_two:
    ["tilezero tmm0" "tilezero tmm1"]
    [
        ".irp line, 0,64,128,192,256,320,384,448,512,576,640,704,768,832,896,960"
        "prefetcht0 [{w0} + 4096 + \\line]"
        ".endr"
        ".irp line, 0,64,128,192,256,320,384,448,512,576,640,704,768,832,896,960"
        "prefetcht0 [{w1} + 4096 + \\line]"
        ".endr"
        "tileloadd tmm4, [{a} + {line}]"
        "tileloadd tmm6, [{w0} + {line}]"
        "tileloadd tmm7, [{w1} + {line}]"
        "tdpbf16ps tmm0, tmm4, tmm6"
        "tdpbf16ps tmm1, tmm4, tmm7"
    ]
    ["tilestored [{to} + {stride}], tmm0" "tilestored [{to} + {stride} + 64], tmm1"]
}

product! {
    /// Two tiles of rows, one of columns.
    multiply_two_by_one:
    ["tilezero tmm0" "tilezero tmm2"]
    [
        "tileloadd tmm4, [{a} + {line}]"
        "tileloadd tmm5, [{a} + {line} + 1024]"
        "tileloadd tmm6, [{w0} + {line}]"
        "tdpbf16ps tmm0, tmm4, tmm6"
        "tdpbf16ps tmm2, tmm5, tmm6"
    ]
    ["tilestored [{to} + {stride}], tmm0" "tilestored [{second} + {stride}], tmm2"]
}

product! {
    /// Two tiles of rows, two of columns.
    multiply_two_by_two:
    ["tilezero tmm0" "tilezero tmm1" "tilezero tmm2" "tilezero tmm3"]
    [
        "tileloadd tmm4, [{a} + {line}]"
        "tileloadd tmm6, [{w0} + {line}]"
        "tdpbf16ps tmm0, tmm4, tmm6"
        "tileloadd tmm7, [{w1} + {line}]"
        "tdpbf16ps tmm1, tmm4, tmm7"
        "tileloadd tmm5, [{a} + {line} + 1024]"
        "tdpbf16ps tmm2, tmm5, tmm6"
        "tdpbf16ps tmm3, tmm5, tmm7"
    ]
    [
        "tilestored [{to} + {stride}], tmm0"
        "tilestored [{to} + {stride} + 64], tmm1"
        "tilestored [{second} + {stride}], tmm2"
        "tilestored [{second} + {stride} + 64], tmm3"
    ]
}
