//! What is said of a sandbox. What it does to a process is tested on processes of their own: `tests/sandbox.rs`.

use super::{Network, Policy, Report, SandboxMode, enter};

#[test]
fn what_held_and_what_did_not_is_said() {
    let report = Report {
        files: Some(7),
        calls: true,
        network: Network::None,
        lacking: vec!["UDP by Landlock".to_owned()],
    };
    assert_eq!(
        report.to_string(),
        "sandbox: files by Landlock ABI 7, network and processes by seccomp; not enforced: UDP by Landlock"
    );
    let open = Report { network: Network::Open, lacking: Vec::new(), ..report };
    assert_eq!(
        open.to_string(),
        "sandbox: files by Landlock ABI 7, processes by seccomp; not enforced: network, since models are fetched or asked elsewhere"
    );
    assert_eq!(Report::default().to_string(), "sandbox: nothing is enforced");
}

#[test]
fn none_is_entered_where_none_is_wanted_and_an_open_network_is_no_sandbox() {
    assert!(enter(SandboxMode::Off, &Policy::default()).unwrap().is_none());
    let open = Policy { network: Network::Open, ..Policy::default() };
    let error = enter(SandboxMode::Require, &open).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("fetched or asked elsewhere"), "{error}");
}
