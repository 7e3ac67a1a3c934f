use std::{collections::BTreeSet, path::Path};

use super::*;
use crate::{X, catalogue, ledger::value::Value, output};

fn docs() -> std::path::PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/figures")).to_owned()
}

/// Every statement that a figure decides, with the figure's committed data.
fn measured() -> Vec<(Claim, Data)> {
    let ledgers = FILES.iter().filter_map(|(page, _)| Ledger::of(page));
    let claims = ledgers.flat_map(|ledger| ledger.claims().cloned().collect::<Vec<_>>());
    let with_data = claims.filter_map(|claim| {
        let record = output::read(claim.figure.as_deref()?, &docs()).unwrap();
        let record = record.unwrap_or_else(|| panic!("{}: no such record", claim.id));
        Some((claim, record.data))
    });
    with_data.collect()
}

/// The data with every number changed.
fn changed(data: &Data, change: impl Fn(usize, f64) -> f64) -> Data {
    let mut data = data.clone();
    let all = data.rows.iter_mut().flat_map(|row| {
        let samples = row.samples.iter_mut();
        samples.chain(row.also.values_mut().flatten())
    });
    for (place, number) in all.enumerate() {
        *number = change(place, *number);
    }
    data
}

fn number(found: &Found) -> Option<f64> {
    match found.whole {
        Value::One(number) => Some(number),
        Value::Many(_) => None,
    }
}

#[test]
fn every_measured_statement_has_a_value_and_every_other_one_says_why_not() {
    for (claim, data) in measured() {
        let (grade, found) = claim
            .judged(&data)
            .unwrap_or_else(|| panic!("{}", claim.id));
        let has_reason = grade == Grade::Reproduced || claim.why.is_some();
        assert!(has_reason, "{}: {grade}, {found}, and no reason", claim.id);
    }
}

#[test]
fn names_are_unique_and_sections_without_a_statement_say_why() {
    for (page, _) in FILES {
        let ledger = Ledger::of(page).unwrap();
        let names: BTreeSet<&str> = ledger.claims().map(|claim| &*claim.id).collect();
        assert_eq!(names.len(), ledger.claims().count(), "{page}");
        for section in &ledger.sections {
            assert_eq!(
                section.claims.is_empty(),
                section.none.is_some(),
                "{}",
                section.at
            );
        }
    }
}

/// Each figure of a statement exists, and each figure on a paper's page decides a statement or a
/// claim of ours.
#[test]
fn figures_and_statements_belong_together() {
    let decided: BTreeSet<String> = measured()
        .into_iter()
        .filter_map(|it| it.0.figure)
        .collect();
    for figure in &decided {
        assert!(catalogue::find(figure).is_some(), "{figure}");
    }
    for figure in catalogue::all() {
        let name = figure.spec().name;
        let record = output::read(name, &docs()).unwrap().unwrap();
        let is_used = decided.contains(name) || !record.findings.is_empty();
        assert!(is_used, "{name} decides nothing");
    }
}

/// If all systems are alike, nothing that states an effect is reproduced. What states a limit, or
/// that there is no effect, falls with some other data.
#[test]
fn no_verdict_survives_data_without_the_effect() {
    for (claim, data) in measured() {
        let falls = |change: &dyn Fn(usize, f64) -> f64| {
            let judged = claim.judged(&changed(&data, change));
            judged.is_some_and(|(grade, _)| grade < Grade::Reproduced)
        };
        let is_limit = matches!(
            claim.stated().unwrap(),
            Stated::Same | Stated::AtMost(_) | Stated::AtLeast(_) | Stated::Cost(_)
        );
        let up = |place: usize, _: f64| 10.0_f64.powi(place as i32 % 11);
        let down = |place: usize, _: f64| 10.0_f64.powi(-(place as i32 % 11));
        let (larger, smaller) = (
            |_, number: f64| number * 1e6,
            |_, number: f64| number * 1e-6,
        );
        let fallen = match is_limit {
            true => falls(&up) || falls(&down) || falls(&larger) || falls(&smaller),
            false => falls(&|_, _| 1.0),
        };
        assert!(fallen, "{}", claim.id);
    }
}

/// A record with half of the paper's effect, on the logarithm, is "weaker", and one with the
/// opposite effect is "not reproduced".
#[test]
fn a_weaker_result_in_a_record_lowers_the_verdict() {
    let mut tried = 0;
    for (claim, data) in measured() {
        let Some(Stated::Factor(paper)) = claim.stated() else {
            continue;
        };
        let (grade, found) = claim.judged(&data).unwrap();
        let ours = number(&found).unwrap();
        // Loads are places on the axis, which no sample changes.
        if grade == Grade::NotReproduced || claim.ours.as_ref().unwrap().contains("highest") {
            continue;
        }
        let power = 0.5 * paper.ln() / ours.ln();
        let (weaker, _) = claim.judged(&changed(&data, |_, y| y.powf(power))).unwrap();
        assert_eq!(weaker, Grade::Weaker, "{}: {ours} for {paper}", claim.id);
        let (opposite, _) = claim
            .judged(&changed(&data, |_, y| y.powf(-power)))
            .unwrap();
        assert!(opposite < Grade::Reproduced, "{}", claim.id);
        tried += 1;
    }
    assert!(tried > 30, "{tried}");
}

/// The verdict on a statement is made in one function, which sees the number of the ledger and the
/// value of a formula without numbers. No figure can state a bound for a paper's statement.
#[test]
fn figures_have_no_part_in_the_verdicts_on_papers() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src/catalogue"));
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        for word in ["ledger::", "Grade", "Stated"] {
            assert!(!text.contains(word), "{} names {word}", path.display());
        }
    }
    let number_alone = Formula::parse("{a|b|c}/2");
    assert!(number_alone.is_err());
}

#[test]
fn the_committed_records_hold_these_verdicts() {
    for figure in catalogue::all() {
        let name = figure.spec().name;
        let Some(record) = output::read(name, &docs()).unwrap() else {
            continue;
        };
        let judged: Vec<(String, Grade)> = Ledger::judge(name, &record.data);
        let recorded: Vec<(String, Grade)> = record.verdicts.into_iter().collect();
        let mut sorted = judged.clone();
        sorted.sort_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(
            recorded, sorted,
            "{name}: glimmer figure all --docs --redraw"
        );
    }
}

#[test]
fn a_statement_has_one_number_and_one_state() {
    let parse = |rest: &str| {
        let head = "[[section]]\nat = \"1\"\ntitle = \"A\"\n[[section.claim]]\nid = \"a\"\n";
        Ledger::parse(&format!("{head}says = \"It is.\"\n{rest}"))
    };
    assert!(parse("needs = \"More cores.\"").is_ok());
    assert!(parse("").is_err());
    assert!(parse("needs = \"More cores.\"\nlater = \"Soon.\"").is_err());
    assert!(parse("figure = \"f\"\nours = \"{a|b|c}\"").is_err());
    assert!(parse("figure = \"f\"\nours = \"{a|b|c}\"\nfactor = 2.0").is_ok());
    assert!(parse("figure = \"f\"\nours = \"{a|b|c}\"\nfactor = 2.0\namount = 1.0").is_err());
    assert!(parse("figure = \"f\"\nfactor = 2.0").is_err());
    assert!(parse("needs = \"More cores.\"\nbound = 0.9").is_err());
}

#[test]
fn data_of_one_repetition_are_judged_on_their_own() {
    let mut data = Data::default();
    for (ours, theirs) in [(30.0, 10.0), (20.0, 5.0), (9.0, 10.0)] {
        data.add(crate::Point::new("p", "ours", X::from("x"), ours));
        data.add(crate::Point::new("p", "theirs", X::from("x"), theirs));
    }
    let formula = Formula::parse("{p|ours|x}/{p|theirs|x}").unwrap();
    let found = Found::of(&data, &formula).unwrap();
    assert_eq!(found.to_string(), "2 (0.90..4 of 3)");
    assert_eq!(
        rule::grade(&Stated::Factor(2.0), &found),
        Grade::NotReproduced
    );
}
