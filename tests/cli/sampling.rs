//! Sampling that a run sets: for all agents, for one, in a recipe; and what keeps it.

use wardround::experiment::contents::Contents;
use wardround::experiment::plan::Plan;
use wardround::recipe::manifest::RecipeManifest;

use crate::binary::{Scratch, assert_equal_runs};

#[test]
fn sampling_is_set_for_all_and_for_one_and_is_kept_by_resume_replay_and_plan() {
    let scratch = Scratch::new();
    scratch.panel();
    scratch.questions(1);
    let run = |more: &str| {
        scratch.wardround(format!(
            "run medmad --data questions.jsonl --format mcq --panel gemma3,llama,qwen3 --decoding text --set max_tokens=6 --set t_max=0 {more}"
        ))
    };
    let set = "--temperature 0.3 --top-p 1 --top-k 7 --set slot.ddx.temperature=0 --set slot.guide.min_p=0.1";
    run(&format!("{set} --out set")).finished();
    let contents = Contents::read(&scratch.path("set")).unwrap();
    let told = |agent: usize| {
        let member = &contents.plan.panel[agent];
        (member.temperature, member.top_k, member.top_p, member.min_p)
    };
    assert_eq!(told(0), (Some(0.3), Some(7), None, None));
    assert_eq!(told(1), (Some(0.0), Some(7), None, None));
    assert_eq!(told(2), (Some(0.3), Some(7), None, Some(0.1)));
    for call in &contents.calls.records {
        let temperature = if call.agent == "ddx" { 0.0 } else { 0.3 };
        assert_eq!((call.sampling.temperature, call.sampling.top_k), (Some(temperature), Some(7)));
        assert_eq!(call.sampling.min_p, (call.agent == "guide").then_some(0.1));
    }
    scratch.wardround("verify set").succeeded();
    let replay = scratch.wardround("replay set");
    assert!(replay.succeeded().stdout.ends_with(", 0 differences\n"), "{replay:#?}");
    // What the plan says goes before what the model's files say now.
    let file = scratch.path("gemma3/generation_config.json");
    let files = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, files.replace("0.95", "0.5")).unwrap();
    scratch.wardround("run --plan set/plan.toml --out again").finished();
    assert_equal_runs(&scratch.path("set"), &scratch.path("again"));
    for (wrong, said) in [
        ("--set slot.ddx.temp=1", "expected temperature, top_p, top_k, min_p or max_tokens"),
        ("--set slot.ddx.top_p=2", "expected a number from 0 to 1"),
        ("--set slot.doc.top_p=1", "has no slot doc"),
        ("--min-p 2", "expected a number from 0 to 1"),
    ] {
        run(&format!("{wrong} --out wrong")).refused(2, &[said]);
    }
}

#[test]
fn a_recipe_sets_sampling_by_method_and_flags_go_before_it() {
    let scratch = Scratch::new();
    scratch.panel();
    scratch.questions(1);
    let recipe = r#"
        title = "Two"
        text = "Two ways to sample."
        runs = 1
        decoding = "grammar"
        panel = ["gemma3"]
        analyses = []
        sampling = { temperature = 0.7 }
        [[dataset]]
        name = "ours"
        label = "Ours"
        file = "questions.jsonl"
        format = "mcq"
        [[method]]
        name = "as-recipe"
        label = "As the recipe"
        group = ""
        system = "zero-shot"
        [[method]]
        name = "preset"
        label = "Preset"
        group = ""
        system = "zero-shot"
        sampling = { temperature = 0.2, top_p = 1.0 }
        settings = { max_tokens = 512 }
    "#;
    std::fs::write(scratch.path("two.toml"), recipe).unwrap();
    let run = |more: &str| {
        scratch.wardround(format!("recipe two.toml --data-dir . --decoding grammar {more}"))
    };
    run("--out asis").finished();
    let told = |cell: &str| {
        let plan = Plan::load(&scratch.path(&format!("{cell}/plan.toml"))).unwrap();
        (plan.panel[0].temperature, plan.panel[0].top_p, plan.panel[0].top_k)
    };
    assert_eq!(told("asis/cells/as-recipe-ours"), (Some(0.7), Some(0.95), Some(64)));
    assert_eq!(told("asis/cells/preset-ours"), (Some(0.2), None, Some(64)));
    let agent = Contents::read(&scratch.path("asis/cells/preset-ours"))
        .unwrap()
        .plan
        .found
        .panel
        .remove(0)
        .agent;
    let calls = Contents::read(&scratch.path("asis/cells/preset-ours")).unwrap().calls.records;
    assert!(calls.iter().all(|call| call.sampling.max_tokens <= Some(512)));
    run(&format!(
        "--temperature 0 --set slot.{agent}.top_k=0 --set slot.{agent}=qwen3 --out flags"
    ))
    .succeeded();
    assert_eq!(told("flags/cells/preset-ours"), (Some(0.0), None, None));
    assert_eq!(told("flags/cells/as-recipe-ours").0, Some(0.0));
    let plan = Plan::load(&scratch.path("flags/cells/preset-ours/plan.toml")).unwrap();
    assert_eq!(plan.panel[0].backbone, "qwen3");
    let begun = RecipeManifest::read(&scratch.path("flags")).unwrap().unwrap();
    assert_eq!(begun.sampling.temperature, Some(0.0));
    scratch.wardround("resume flags").succeeded();
    run("--temperature 1 --out asis").refused(2, &["sampling.temperature is absent against 1.0"]);
    run("--set slot.nobody.top_k=1 --out nobody").refused(2, &["slot.nobody"]);
}
