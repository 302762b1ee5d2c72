//! The instruction sets that kernels are written for, and which of them this machine has.

use std::sync::LazyLock;

/// Generations of vector instructions. Results are equal in all of them, bit for bit, but for products with weights
/// kept as bf16, [`Isa::multiplies_bf16`], and with keys and values kept so, [`Isa::pairs_keys`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isa {
    /// No instruction by name; on AArch64 the compiler makes NEON of it.
    Portable,
    Avx2,
    /// Dots of four bytes in 256 bits.
    AvxVnni,
    Avx512,
    /// Dots of four bytes in 512 bits.
    Avx512Vnni,
    /// Dots of two bf16 in 512 bits.
    Avx512Bf16,
    /// Products of whole tiles, of bytes and of bf16.
    Amx,
}

impl Isa {
    pub fn detect() -> Isa {
        static DETECTED: LazyLock<Isa> = LazyLock::new(|| {
            let best = Isa::available().into_iter().rfind(|isa| isa.pays());
            best.unwrap_or(Isa::Portable)
        });
        *DETECTED
    }

    /// All that this machine has, in the order above.
    pub fn available() -> Vec<Isa> {
        let mut available = vec![Isa::Portable];
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("f16c");
            let avx512 = avx2 && is_x86_feature_detected!("avx512f");
            let vnni = avx512
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vnni");
            let bf16 = vnni && is_x86_feature_detected!("avx512bf16");
            let generations = [
                (Isa::Avx2, avx2),
                (Isa::AvxVnni, avx2 && is_x86_feature_detected!("avxvnni")),
                (Isa::Avx512, avx512),
                (Isa::Avx512Vnni, vnni),
                (Isa::Avx512Bf16, bf16),
                (Isa::Amx, bf16 && has_tiles()),
            ];
            let present = generations.into_iter().filter(|(_, has)| *has);
            available.extend(present.map(|(isa, _)| isa));
        }
        available
    }

    /// Intel's cores dot two bf16 at half the rate of two f32 products, AMD's at twice that rate.
    fn pays(self) -> bool {
        self != Isa::Avx512Bf16 || is_amd()
    }

    /// Whether products with bf16 weights are by instructions that take bf16 alone: activations are rounded to it, and
    /// the order of a sum is the instruction's.
    pub fn multiplies_bf16(self) -> bool {
        matches!(self, Isa::Avx512Bf16 | Isa::Amx)
    }

    /// Whether attention over keys and values kept as bf16 is by products of pairs of bf16: queries and weights are rounded to
    /// it, and the order of a sum is the instruction's.
    pub fn pairs_keys(self) -> bool {
        self == Isa::Avx512Bf16
    }

    /// Names what a result's bits may depend on, and what its speed does: dots of bytes are left out.
    pub fn name(self) -> &'static str {
        match self {
            Isa::Portable => "portable",
            Isa::Avx2 | Isa::AvxVnni => "avx2",
            Isa::Avx512 | Isa::Avx512Vnni => "avx512",
            Isa::Avx512Bf16 => "avx512 bf16",
            Isa::Amx => "avx512 amx",
        }
    }
}

fn is_amd() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        let vendor = std::arch::x86_64::__cpuid(0);
        [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes) == [*b"Auth", *b"enti", *b"cAMD"]
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Whether the CPU has tiles of bytes and bf16, and the system lets this process use them.
#[cfg(target_arch = "x86_64")]
fn has_tiles() -> bool {
    const BF16: u32 = 1 << 22;
    const TILES: u32 = 1 << 24;
    const INT8: u32 = 1 << 25;
    let features = std::arch::x86_64::__cpuid_count(7, 0).edx;
    features & (BF16 | TILES | INT8) == BF16 | TILES | INT8 && ask_for_tiles()
}

/// Linux saves tile registers only for a process that asked for them.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn ask_for_tiles() -> bool {
    const REQUEST: libc::c_long = 0x1023;
    const TILE_DATA: libc::c_long = 18;
    // SAFETY: the call takes two numbers and touches no memory of ours.
    unsafe { libc::syscall(libc::SYS_arch_prctl, REQUEST, TILE_DATA) == 0 }
}

#[cfg(all(target_arch = "x86_64", not(target_os = "linux")))]
fn ask_for_tiles() -> bool {
    false
}
