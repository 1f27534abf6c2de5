//! Looking through blocks says the same as looking at each line.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::query::Collector;

fn block(lines: &[String]) -> Block {
    let mut block = Block::default();
    for (index, line) in lines.iter().enumerate() {
        block.push(index as i64, index as u64, 0, line);
    }
    block
}

fn found(scan: &mut Scan<'_>, block: &Block) -> Vec<usize> {
    let mut found = Vec::new();
    scan.lines(block, |_| true, |index| found.push(index));
    found.sort_unstable();
    found
}

#[test]
fn only_two_non_ascii_letters_have_ascii_lower_case() {
    let mut like: Vec<(u8, String)> = Vec::new();
    for letter in ('\u{80}'..=char::MAX).filter(|letter| letter.to_lowercase().any(|lower| lower.is_ascii()))
    {
        let lower = letter.to_lowercase().find(char::is_ascii).unwrap();
        like.push((lower as u8, letter.to_string()));
    }
    like.sort_unstable();
    let mut known = LIKE_ASCII.map(|(letter, like)| (letter, like.to_owned()));
    known.sort_unstable();
    assert_eq!(like, known);
}

#[test]
fn a_needle_across_two_pieces_is_found() {
    let query = Query::parse("\"a needle\"");
    let mut scan = Scan::new(&query);
    for before in AT_ONCE - 20..AT_ONCE + 20 {
        let text = ["x".repeat(before), "A Needle".into(), "y".repeat(AT_ONCE)].concat();
        assert!(scan.may_hold(text.as_bytes()), "{before}");
        assert!(!scan.may_hold(text.replace("dle", "d-e").as_bytes()), "{before}");
    }
    let long = "n".repeat(3 * AT_ONCE);
    let query = Query::parse(&format!("\"{long}\""));
    let text = ["x", &long, "x"].concat();
    assert!(Scan::new(&query).may_hold(text.as_bytes()));
    assert!(!Scan::new(&query).may_hold(&text.as_bytes()[2..]));
}

/// Lines and queries of few letters, so that they often meet.
const LINE: &str = "([abkKiIé\u{212a}\u{130}ß_1]{0,5}[ .,\u{307}-]{0,2}){0,6}";
const ASKED: &str = "(\"?[abkKiIé\u{212a}\u{130}_1]{1,4}[ .,\u{307}*-]{0,2}){1,4}\"?";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_block_gives_the_lines_that_match_one_by_one(lines in vec(LINE, 0..12), text in ASKED) {
        let (query, block) = (Query::parse(&text), block(&lines));
        let mut scan = Scan::new(&query);
        let due: Vec<usize> = (0..lines.len()).filter(|index| query.matches(&lines[*index])).collect();
        prop_assert_eq!(&found(&mut scan, &block), &due);
        let mut packed = Vec::new();
        block.pack(&mut packed);
        prop_assert!(due.is_empty() || scan.may_hold(&packed), "{:?} is passed over", block.text);
    }

    #[test]
    fn words_that_are_looked_up_are_those_of_every_line_that_matches(line in LINE, text in ASKED) {
        let query = Query::parse(&text);
        let mut held = Vec::new();
        Collector::new().collect(&block(std::slice::from_ref(&line)), |number| held.push(number));
        let all = query.words_to_look_up().iter().all(|number| held.contains(number));
        prop_assert!(all || !query.matches(&line));
    }

    #[test]
    fn any_part_of_a_line_finds_it(line in LINE, (start, length) in (0..40usize, 1..20usize)) {
        let part: String = line.chars().skip(start).take(length).collect();
        let query = Query::parse(&format!("\"{part}\""));
        let mut held = Vec::new();
        let block = block(std::slice::from_ref(&line));
        Collector::new().collect(&block, |number| held.push(number));
        let missed = query.matches(&line) && !query.words_to_look_up().iter().all(|number| held.contains(number));
        prop_assert!(!missed);
        prop_assert_eq!(!found(&mut Scan::new(&query), &block).is_empty(), query.matches(&line));
    }
}
