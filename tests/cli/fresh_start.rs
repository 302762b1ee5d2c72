//! The first minutes with the binary: `demo`, `models`, `doctor`, and mistyped command lines.

use std::os::unix::fs::PermissionsExt;

use wardround::model::Family;

use crate::binary::{Scratch, outcome, signal, size, wait};
use crate::common;
use crate::determinism::wait_until;

#[test]
fn a_demo_runs_tells_a_debate_and_leaves_a_private_run_directory() {
    let scratch = Scratch::new();
    let demo = "demo --out first";
    let told = scratch.wardround(demo);
    let noise =
        "The three models have random weights: what they say is noise, how they are run is not.\n";
    assert!(told.succeeded().stdout.ends_with(noise), "{told:#?}");
    for part in [
        "medmad on demo: 8 items, 1 run\n",
        "accuracy   ",
        "calls      ",
        "The debate on demo-",
        "\n    A: ",
        "  round 0\n    sym    says ",
        "    the vote: ",
        "  the team says ",
    ] {
        assert!(told.stdout.contains(part), "no {part:?} in {told:#?}");
    }
    assert!(told.stderr.contains("/tiny-gemma3\n"), "{told:#?}");

    let mode = |name: &str| {
        let metadata = std::fs::metadata(scratch.path(name)).unwrap();
        metadata.permissions().mode() & 0o777
    };
    assert_eq!(mode("first"), 0o700);
    let mut names: Vec<String> = std::fs::read_dir(scratch.path("first"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let expected =
        ["calls.jsonl", "dataset.jsonl", "items.jsonl", "plan.toml", "report.html", "results.json"];
    assert_eq!(names, expected);
    for name in names {
        assert_eq!(mode(&format!("first/{name}")), 0o600, "{name}");
    }
    scratch.wardround("verify first").succeeded();
    scratch.wardround(demo).refused(
        2,
        &[
            "first exists and is not empty",
            "hint: `wardround resume first` goes on, or choose another `--out`",
        ],
    );
}

#[test]
fn a_demonstration_with_a_real_model_wants_it_in_a_folder_or_in_the_cache() {
    let scratch = Scratch::new();
    scratch.wardround("demo --real ./nowhere").refused(2, &["no model is called `./nowhere`"]);
    scratch.wardround("demo --real --offline").refused(
        3,
        &[
            "HuggingFaceTB/SmolLM2-135M-Instruct at",
            "is incomplete in the cache",
            "--offline forbids",
        ],
    );
    assert!(!scratch.path("wardround-demo").exists());
    // In its place a tiny one, of the same family: the way is the same.
    scratch.model(Family::Llama);
    let sandbox = if common::lacks_landlock() { "auto" } else { "require" };
    let told = scratch.wardround(format!("demo --real ./llama --out real --sandbox {sandbox}"));
    // What noise says is unread, so that there is no debate to show.
    let told = &told.finished().stdout;
    assert!(told.contains("medmad on demo: 8 items"), "{told}");
    scratch.wardround("verify real").succeeded();
}

#[test]
fn a_demo_without_flags_finds_its_own_places_and_uses_its_models_again() {
    let scratch = Scratch::new();
    let interrupted = |out: &str| {
        let mut child = scratch.command("demo").spawn().unwrap();
        let calls = scratch.path(out).join("calls.jsonl");
        wait_until(&mut child, || size(&calls) > 0);
        signal(&child, "INT");
        let told = wait(child);
        told.refused(130, &[&format!("`wardround resume {out}` goes on")]);
        told.stderr
    };
    let making = format!("making {}", scratch.path(".cache/wardround").display());
    assert_eq!(interrupted("wardround-demo").matches(&making).count(), 3);
    assert_eq!(interrupted("wardround-demo-2").matches("making").count(), 0);
}

#[test]
fn a_model_is_made_listed_and_verified() {
    let scratch = Scratch::new();
    for family in ["gemma3", "gemma4", "llama", "ministral3", "qwen3", "smollm3"] {
        let made = scratch.wardround(format!("models synth {family} {family} --seed 5"));
        assert_eq!(made.succeeded().stdout, format!("{family}\n"));
        let verified = scratch.wardround(format!("models verify ./{family}"));
        assert!(verified.succeeded().stdout.contains("model.safetensors"), "{verified:#?}");
    }
    scratch
        .wardround("models synth gemma3 gemma3")
        .refused(2, &["gemma3 exists and is not an empty directory"]);
    let known = "gemma3, gemma4, llama, ministral3, qwen3, qwen35, smollm3";
    scratch.wardround("models synth mamba m").refused(2, &["'mamba'", known]);
    let listed = scratch.wardround("models ls");
    let cards: Vec<&str> = listed
        .succeeded()
        .stdout
        .lines()
        .skip(3)
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let expected = [
        "all-minilm-l6-v2",
        "bert-base-chinese",
        "bert-base-multilingual-cased",
        "bleurt-20",
        "deberta-xlarge-mnli",
        "gemma3-1b",
        "gemma3-270m",
        "gemma3-4b",
        "gemma4-e2b",
        "gemma4-e4b",
        "llama3.2-3b",
        "medcpt-article-encoder",
        "medcpt-cross-encoder",
        "medcpt-query-encoder",
        "medgemma1.5-4b",
        "pubmedbert-matryoshka",
        "qwen3-0.6b",
        "qwen3-4b",
        "qwen3-4b-2507",
        "qwen3.5-0.8b",
        "qwen3.5-2b",
        "qwen3.5-4b",
        "qwen3.5-9b",
        "s-pubmedbert-ms-marco",
        "smollm2-135m",
        "smollm2-360m",
        "smollm3-3b",
    ];
    assert_eq!(cards, expected);
    let absent = listed.stdout.lines().filter(|line| line.ends_with("  no")).count();
    assert_eq!(absent, expected.len(), "{listed:#?}");
}

#[test]
fn a_version_says_how_it_was_built() {
    let scratch = Scratch::new();
    let text = scratch.wardround("doctor --offline").stdout;
    for field in ["rustc      rustc 1.", "commit", "target", "profile", "features", "epoch"] {
        assert!(text.contains(field), "{text}");
    }
    assert!(scratch.wardround("--version").stdout.starts_with("wardround 0.1.0"));
}

#[test]
fn a_doctor_says_what_there_is() {
    let scratch = Scratch::new();
    let told = scratch.wardround("doctor --offline");
    let cache = format!("cache      {}", scratch.path(".cache/huggingface/hub").display());
    for part in [
        "version    0.1.0",
        "device     cpu: ",
        "memory     ",
        "network    none: --offline forbids connections",
        &cache,
    ] {
        assert!(told.succeeded().stdout.contains(part), "no {part:?} in {told:#?}");
    }
    if cfg!(not(any(feature = "cuda", feature = "cuda-emulated"))) {
        let reason = "device     there is no cuda:0: this build has no CUDA";
        assert!(told.stdout.contains(reason), "{told:#?}");
    }
}

#[test]
fn an_unknown_or_absent_model_is_named() {
    let scratch = Scratch::new();
    scratch.questions(1);
    let run =
        |panel| scratch.run(format!("--panel {panel} --data questions.jsonl --out out --offline"));
    run("gemma4-4b").refused(
        2,
        &[
            "no model is called `gemma4-4b`",
            "hint: cards of language models: gemma3-1b, gemma3-270m, gemma3-4b, gemma4-e2b, ",
        ],
    );
    run("./nowhere").refused(2, &["no model is called `./nowhere`: it is not a directory here"]);
    run("qwen3-4b").refused(
        3,
        &[
            "Qwen/Qwen3-4B",
            "is incomplete in the cache",
            "--offline forbids connections",
            "hint: run `wardround models fetch qwen3-4b --to DIR` on a machine with a network",
        ],
    );
    scratch.model(Family::Llama);
    run("llama,llama").refused(
        2,
        &["a panel of 2 models, and medmad takes 3", "hint: give it 3 models, or one for all"],
    );
    assert!(!scratch.path("out").exists());
    let fetch = scratch.wardround("models fetch qwen3-4b --offline");
    fetch.refused(3, &["qwen3-4b cannot be fetched: --offline forbids connections"]);
    for (name, said) in
        [("WARDROUND_OFFLINE", "forbids connections"), ("HF_HUB_OFFLINE", "HF_HUB_OFFLINE is set")]
    {
        for value in ["1", "yes", "TRUE"] {
            let mut command = scratch.command("models fetch qwen3-4b");
            outcome(command.env(name, value)).refused(3, &[said]);
        }
        let mut command = scratch.command("models fetch qwen3-4b");
        outcome(command.env(name, "perhaps")).refused(2, &["perhaps", "1, true, yes or on"]);
    }
    let mut command = scratch.command("models ls");
    let unset = ["WARDROUND_OFFLINE", "WARDROUND_QUIET", "WARDROUND_THREADS", "WARDROUND_DEVICE"];
    outcome(command.envs(unset.map(|name| (name, "")))).succeeded();
}

#[test]
fn paths_with_equals_signs_are_used() {
    let scratch = Scratch::new();
    scratch.questions(1);
    let model = scratch.model(Family::Llama);
    std::fs::rename(model, scratch.path("lla=ma")).unwrap();
    scratch.run("--panel lla=ma --data questions.jsonl --out o,ut=1").succeeded();
    scratch.wardround("verify o,ut=1").succeeded();
}

#[test]
fn a_setting_that_is_unknown_or_out_of_range_is_named() {
    let scratch = Scratch::new();
    scratch.questions(1);
    for (pair, parts) in [
        (
            "tmax=1",
            [
                "there is no setting tmax",
                "hint: the system's settings are always_debate, answer_reading",
            ],
        ),
        ("t_max", ["\"t_max\" is not key=value", "hint: write --set t_max=2"]),
        ("t_max=-1", ["setting t_max: \"-1\" is not a whole number", "from 0 to 100"]),
        ("counterfactual=maybe", ["setting counterfactual: \"maybe\"", "on or paper or strict"]),
    ] {
        scratch.run_one("out", &format!("--set {pair}")).refused(2, &parts);
    }
    assert!(!scratch.path("out").exists());
}

#[test]
fn a_dry_run_says_what_would_run_and_writes_nothing() {
    let scratch = Scratch::new();
    scratch.questions(3);
    scratch.model(Family::Llama);
    let before = std::fs::read_dir(scratch.path(".")).unwrap().count();
    let told = scratch.run_one("out", "--runs 2 --set t_max=3 --dry-run");
    for part in [
        "constrained text, on questions.jsonl: 3 items, 2 runs, at most 72 calls\n",
        "calls      at most 72",
        "sym        llama (llama, bf16)\n",
        "of KV cache",
        "free\n",
    ] {
        assert!(told.succeeded().stdout.contains(part), "no {part:?} in {told:#?}");
    }
    assert_eq!(std::fs::read_dir(scratch.path(".")).unwrap().count(), before);
}

#[test]
fn a_command_line_without_its_needs_is_refused() {
    let scratch = Scratch::new();
    scratch.wardround("run medmad").refused(2, &["--data <FILE>"]);
    scratch.wardround("run medmad --data x.jsonl").refused(2, &["--format <FORMAT>"]);
    scratch
        .wardround("run medpanel --data x.jsonl --format mcq")
        .refused(2, &["no system medpanel", "medmad"]);
    for settled in [
        "medmad",
        "--limit 1",
        "--decoding text",
        "--top-k 1",
        "--prompts p",
        "--exemplar-reasons r",
        "--seed 1",
    ] {
        scratch
            .wardround(format!("run --plan plan.toml {settled}"))
            .refused(2, &["--plan <FILE>' cannot be used with"]);
    }
    assert_eq!(scratch.wardround("--version").succeeded().stdout, "wardround 0.1.0\n");
}

#[test]
fn a_device_that_this_build_is_without_is_named() {
    let scratch = Scratch::new();
    scratch.model(Family::Qwen3);
    let absent = [
        ("metal", cfg!(feature = "metal"), "feature `metal`"),
        ("candle-cuda", cfg!(feature = "candle-cuda"), "feature `candle-cuda`"),
        ("cuda", cfg!(any(feature = "cuda", feature = "cuda-emulated")), "--features cuda"),
    ];
    for (device, is_built, feature) in absent {
        if is_built {
            continue;
        }
        let told = scratch.wardround(format!("bench --model qwen3 --device {device}"));
        told.refused(2, &["there is no ", device, feature, "hint: ", "--device cpu"]);
    }
}
