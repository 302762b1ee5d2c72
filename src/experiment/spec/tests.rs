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
fn an_agent_samples_as_it_is_told_and_else_as_all() {
    let pairs = ["slot.loc1.temperature=0.7", "slot.corr1=another", "agents=7"];
    let set = Set::of(&pairs.map(str::to_owned)).unwrap();
    assert_eq!(set.settings.to_string(), "agents = \"7\"\n");
    let entry = SystemEntry::named("medguards").unwrap();
    let config = SystemConfig::with(entry, &set.settings).unwrap();
    let mut spec = Spec::new(config, "notes.jsonl", Format::Notes).unwrap();
    spec.panel = ["a", "b", "c"].map(str::to_owned).to_vec();
    (spec.slots, spec.slot_sampling) = (set.models, set.sampling);
    spec.sampling.top_p = Some(0.9);
    let sampled = |agent: &str| {
        let slots = spec.config.slots();
        let sampling = spec.sampling_of(slots.iter().find(|slot| slot.agent == agent).unwrap());
        (sampling.temperature, sampling.top_p)
    };
    assert_eq!(sampled("det1"), (None, Some(0.9)));
    assert_eq!(sampled("loc1"), (Some(0.7), Some(0.9)));
    assert!(spec.slot_models().is_ok());
    spec.slot_sampling.insert("nobody".to_owned(), SamplingChoice::default());
    let error = spec.slot_models().unwrap_err().to_string();
    assert_eq!(error, "medguards has no slot nobody");
    assert!(Set::of(&["slot.loc1.heat=2".to_owned()]).is_err());
    for twice in ["agents=7", "slot.loc1=x", "slot.loc1.min_p=0.3"] {
        let pairs = [twice.to_owned(), "t=1".to_owned(), format!(" {twice}")];
        assert!(Set::of(&pairs).is_err(), "{twice}");
    }
}
