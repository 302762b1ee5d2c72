use super::*;

#[test]
fn a_shard_is_written_as_it_reads() {
    assert_eq!("2/4".parse::<Shard>().unwrap().to_string(), "2/4");
    for wrong in ["", "2", "0/4", "5/4", "1/0", "-1/2", "1/2/3", "a/b", "1 / 2"] {
        let error = wrong.parse::<Shard>().unwrap_err();
        assert!(error.contains("such as 2/4"), "{wrong}: {error}");
    }
}

#[test]
fn every_item_falls_to_one_shard() {
    for of in 1..=9 {
        let mut all = Vec::new();
        for number in 1..=of {
            let own = Shard { number, of }.take((1..=7).collect());
            assert!(
                own.len() + 1 >= Shard { number, of }.share(7) && own.len() <= 7_usize.div_ceil(of)
            );
            all.extend(own);
        }
        all.sort_unstable();
        assert_eq!(all, Vec::from_iter(1..=7));
    }
    assert_eq!(Shard { number: 2, of: 3 }.take(vec![1, 2, 3, 4, 5, 6, 7]), [2, 5]);
}

#[test]
fn a_member_of_the_panel_samples_as_it_is_told_and_an_agent_before_it() {
    let pairs = [
        "panel.1.temperature=0.2",
        "panel.1.top_p=0.9",
        "slot.loc1.temperature=0.7",
        "slot.corr1=another",
        "panel.3.temperature=0.4",
        "agents=7",
    ];
    let set = Set::of(&pairs.map(str::to_owned)).unwrap();
    assert_eq!(set.settings.to_string(), "agents = \"7\"\n");
    let entry = SystemEntry::named("medguards").unwrap();
    let config = SystemConfig::with(entry, &set.settings).unwrap();
    let mut spec = Spec::new(config, "notes.jsonl", Format::Notes).unwrap();
    spec.panel = ["a", "b", "c"].map(str::to_owned).to_vec();
    (spec.slots, spec.slot_sampling) = (set.models, set.sampling);
    let sampled = |agent: &str| {
        let slots = spec.config.slots();
        let sampling = spec.sampling_of(slots.iter().find(|slot| slot.agent == agent).unwrap());
        (sampling.temperature, sampling.top_p)
    };
    assert_eq!(sampled("det1"), (Some(0.2), Some(0.9)));
    assert_eq!(sampled("loc1"), (Some(0.7), Some(0.9)));
    assert_eq!(sampled("det2"), (None, None));
    assert_eq!(sampled("det3"), (Some(0.4), None));
    // It has a model of its own.
    assert_eq!(sampled("corr1"), (None, None));
    assert!(spec.slot_models().is_ok());
    spec.slot_sampling.insert("panel.4".to_owned(), SamplingChoice::default());
    assert!(spec.slot_models().is_err());
    assert!(Set::of(&["panel.1.heat=2".to_owned()]).is_err());
    assert!(Set::of(&["panel.1=x".to_owned()]).is_err());
    for twice in ["agents=7", "slot.loc1=x", "slot.loc1.seed=3", "panel.1.top_p=0.5"] {
        let pairs = [twice.to_owned(), "t=1".to_owned(), format!(" {twice}")];
        assert!(Set::of(&pairs).is_err(), "{twice}");
    }
}

#[test]
fn one_model_is_the_first_member_of_the_panel_in_every_seat() {
    let config = SystemConfig::named("medmad").unwrap();
    let mut spec = Spec::new(config, "x.jsonl", Format::Mcq).unwrap();
    spec.slot_sampling = Set::of(&["panel.1.temperature=0.2".to_owned()]).unwrap().sampling;
    for (panel, cool) in [(vec!["a"], 3), (vec!["a", "b", "c"], 1)] {
        spec.panel = panel.into_iter().map(str::to_owned).collect();
        let slots = spec.config.slots();
        let sampled = slots.iter().map(|slot| spec.sampling_of(slot).temperature);
        assert_eq!(sampled.filter(|one| *one == Some(0.2)).count(), cool);
        assert!(spec.slot_models().is_ok());
    }
    spec.panel = vec!["a".to_owned()];
    spec.slot_sampling.insert("panel.2".to_owned(), SamplingChoice::default());
    let error = spec.slot_models().unwrap_err().to_string();
    assert_eq!(error, "medmad has no slot panel.2");
}
