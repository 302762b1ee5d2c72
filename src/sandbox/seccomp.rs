//! Calls, by seccomp, on every thread at once: those of `calls.rs`, with the arguments that they may have, and no others.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter_all_threads,
};

use super::Network;
use super::calls::{ABSENT, FREE, GPU, OPEN, Only, ours};

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Restricts every thread of the process, for good, to the calls that it needs.
pub fn restrict_calls(network: Network) -> Result<(), String> {
    // They are said not to exist, and the C library falls back on older ones.
    let absent = ABSENT.iter().map(|call| (*call, Vec::new())).collect();
    apply(absent, SeccompAction::Errno(libc::ENOSYS as u32), SeccompAction::Allow)?;
    #[cfg(target_arch = "x86_64")]
    short_pointers::kill().map_err(said)?;
    let free = FREE.iter().chain(ABSENT);
    let mut allowed: Rules = free.map(|call| (*call, Vec::new())).collect();
    if network == Network::Open {
        allowed.extend(OPEN.iter().map(|call| (*call, Vec::new())));
    }
    if cfg!(feature = "cuda") {
        allowed.extend(GPU.iter().map(|call| (*call, Vec::new())));
    }
    for (call, cases) in ours(network) {
        let rules = cases.iter().map(|case| rule(case)).collect::<Result<_, _>>()?;
        allowed.insert(call, rules);
    }
    apply(allowed, SeccompAction::Allow, SeccompAction::Errno(libc::EPERM as u32))
}

/// All of `case` hold.
fn rule(case: &[Only]) -> Result<SeccompRule, String> {
    let conditions = case.iter().map(|only| {
        let (argument, length, is, value) = match *only {
            Only::Is(argument, value) => {
                (argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
            }
            Only::Not(argument, value) => {
                (argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value)
            }
            Only::Null(argument) => (argument, SeccompCmpArgLen::Qword, SeccompCmpOp::Eq, 0),
            Only::Bits(argument, mask, value) => {
                (argument, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(mask), value)
            }
        };
        SeccompCondition::new(argument, length, is, value)
    });
    let conditions = conditions.collect::<Result<_, _>>().map_err(said)?;
    SeccompRule::new(conditions).map_err(said)
}

/// `matched` for the calls of `rules`, `others` for the rest.
fn apply(rules: Rules, matched: SeccompAction, others: SeccompAction) -> Result<(), String> {
    let architecture = std::env::consts::ARCH.try_into().map_err(said)?;
    let filter = SeccompFilter::new(rules, others, matched, architecture);
    let program: BpfProgram = filter.and_then(TryInto::try_into).map_err(said)?;
    apply_filter_all_threads(&program).map_err(said)
}

fn said(error: impl std::fmt::Display) -> String {
    format!("calls ({error})")
}

/// The x32 interface of x86-64 kernels: the same machine with short pointers, and numbers of its own for some calls. Nothing here is
/// built for it, so whoever uses it is not this program.
#[cfg(target_arch = "x86_64")]
mod short_pointers {
    use seccompiler::{BpfProgram, SeccompAction, apply_filter_all_threads, sock_filter};

    /// Its numbers begin here; none of the usual ones is as large.
    const FIRST: u32 = 0x4000_0000;
    /// Instructions of a filter: load a word of the call's description, jump where it is not less, return.
    const LOAD: u16 = 0x20;
    const JUMP_IF_NOT_LESS: u16 = 0x35;
    const RETURN: u16 = 0x06;

    /// Ends the process at any such call. Calls of 32-bit programs are killed by the architecture that the other filters ask for.
    pub fn kill() -> Result<(), seccompiler::Error> {
        let step = |code: u16, jt: u8, k: u32| sock_filter { code, jt, jf: 0, k };
        let program: BpfProgram = vec![
            // The number is the first word.
            step(LOAD, 0, 0),
            step(JUMP_IF_NOT_LESS, 1, FIRST),
            step(RETURN, 0, SeccompAction::Allow.into()),
            step(RETURN, 0, SeccompAction::KillProcess.into()),
        ];
        apply_filter_all_threads(&program)
    }
}
