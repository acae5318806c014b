//! `--vary key=values`: a list, or a range.

use std::str::FromStr;

/// A key with the values that it takes in turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vary {
    /// As typed.
    pub text: String,
    /// As `--set` writes it.
    pub key: String,
    /// At least one, each as `--set` writes it.
    pub values: Vec<String>,
}

/// More would be a mistake.
const VALUES_MAX: usize = 1_000;

impl FromStr for Vary {
    type Err = String;
    /// Reads `key=a,b,c` and `key=1..10 Mbit/s step 1 Mbit/s`; the error says
    /// what to write.
    fn from_str(text: &str) -> Result<Vary, String> {
        let Some((key, values)) = text.split_once('=').filter(|(key, _)| !key.trim().is_empty())
        else {
            return Err(format!(
                "\"{text}\" is not a key with values: write flow.main.cc=bbr,cubic"
            ));
        };
        let key = key.trim().to_string();
        if key == "seed" {
            return Err("the seed varies from repeat to repeat: write --repeat K".to_string());
        }
        let values = match Range::read(values)? {
            Some(range) => range.values()?,
            None => list(values)?,
        };
        if let Some(twice) = (1..values.len()).find(|at| values[..*at].contains(&values[*at])) {
            return Err(format!("{key} has the value {} twice", values[twice]));
        }
        Ok(Vary { text: text.to_string(), key, values })
    }
}

/// Splits at commas that stand in no brackets, braces or quotes.
fn list(text: &str) -> Result<Vec<String>, String> {
    let (mut values, mut value) = (Vec::new(), String::new());
    let (mut depth, mut quote) = (0i32, None);
    for c in text.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth -= 1,
            (None, ',') if depth == 0 => {
                values.push(std::mem::take(&mut value));
                continue;
            }
            _ => {}
        }
        value.push(c);
    }
    values.push(value);
    if depth != 0 || quote.is_some() {
        return Err(format!("a bracket or quote stays open in \"{text}\": close it"));
    }
    let values: Vec<String> = values.iter().map(|value| unquoted(value.trim())).collect();
    match values.iter().any(String::is_empty) {
        true => Err(format!("a value is empty in \"{text}\": write a,b,c")),
        false => Ok(values),
    }
}

/// A value in quotes that could do without them.
fn unquoted(value: &str) -> String {
    let inner = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let inner = inner.filter(|inner| !inner.is_empty() && !inner.contains(['"', '\\']));
    let looks_else = |text: &str| {
        text.starts_with(|c: char| "[{'-+.0123456789".contains(c)) && !text.contains(' ')
            || matches!(text, "true" | "false")
    };
    inner.filter(|inner| !looks_else(inner)).unwrap_or(value).to_string()
}

/// `FROM..TO UNIT step STEP UNIT`, or `step xFACTOR`.
struct Range {
    from: Decimal,
    to: Decimal,
    step: Step,
    unit: String,
    text: String,
}

enum Step {
    Plus(Decimal),
    Times(Decimal),
}

impl Range {
    /// None: the text is no range but a list.
    fn read(text: &str) -> Result<Option<Range>, String> {
        let Some((from, rest)) = text.split_once("..") else { return Ok(None) };
        let Some((from, from_unit)) = quantity(from) else { return Ok(None) };
        let wrong = |what: &str| {
            let example = "1..10 Mbit/s step 1 Mbit/s, or 10..80 ms step x2";
            Err(format!("{what} in the range \"{}\": write {example}", text.trim()))
        };
        let Some((to, step)) = rest.split_once(" step ") else { return wrong("there is no step") };
        let Some((to, unit)) = quantity(to) else { return wrong("there is no end") };
        let step = step.trim();
        let factor = step.strip_prefix(['x', '*']).map(|factor| quantity(factor.trim()));
        let step = match (factor, quantity(step)) {
            (Some(Some((factor, ""))), _) if factor.is_above(&Decimal::ONE) => Step::Times(factor),
            (None, Some((step, its))) if its == unit && step.is_above(&Decimal::ZERO) => {
                Step::Plus(step)
            }
            (None, Some((_, its))) if its != unit => return wrong("the units differ"),
            _ => return wrong("the step leads nowhere"),
        };
        if !from_unit.is_empty() && from_unit != unit {
            return wrong("the units differ");
        }
        if from.is_above(&to) || from.digits == 0 && matches!(step, Step::Times(_)) {
            return wrong("the step leads nowhere");
        }
        let (unit, text) = (unit.to_string(), text.trim().to_string());
        Ok(Some(Range { from, to, step, unit, text }))
    }

    /// From the first up to the last that is not beyond the end.
    fn values(&self) -> Result<Vec<String>, String> {
        let (mut values, mut next) = (Vec::new(), Some(self.from));
        while let Some(value) = next.filter(|value| !value.is_above(&self.to)) {
            if values.len() == VALUES_MAX {
                return Err(format!(
                    "{} has over {VALUES_MAX} values: write a larger step",
                    self.text
                ));
            }
            let space = if self.unit.is_empty() { "" } else { " " };
            values.push(format!("{}{space}{}", value.text(), self.unit));
            next = match &self.step {
                Step::Plus(step) => value.plus(step),
                Step::Times(factor) => value.times(factor),
            };
        }
        Ok(values)
    }
}

/// A number and what stands behind it.
fn quantity(text: &str) -> Option<(Decimal, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    Some((Decimal::read(&text[..end])?, text[end..].trim()))
}

/// A decimal number, exactly: 0.1 three times is 0.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Decimal {
    digits: i128,
    /// How many of them stand after the point.
    places: u32,
}

impl Decimal {
    const ZERO: Decimal = Decimal { digits: 0, places: 0 };
    const ONE: Decimal = Decimal { digits: 1, places: 0 };

    fn read(text: &str) -> Option<Decimal> {
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        let all = format!("{whole}{part}");
        if whole.is_empty() || all.len() > 18 || text.ends_with('.') {
            return None;
        }
        Some(Decimal { digits: all.parse().ok()?, places: part.len() as u32 }.trimmed())
    }

    fn trimmed(mut self) -> Decimal {
        while self.places > 0 && self.digits % 10 == 0 {
            self.digits /= 10;
            self.places -= 1;
        }
        self
    }

    /// Both in the same places.
    fn aligned(&self, other: &Decimal) -> Option<(i128, i128, u32)> {
        let places = self.places.max(other.places);
        let digits = |n: &Decimal| n.digits.checked_mul(10i128.checked_pow(places - n.places)?);
        Some((digits(self)?, digits(other)?, places))
    }

    fn is_above(&self, other: &Decimal) -> bool {
        self.aligned(other).is_none_or(|(own, others, _)| own > others)
    }

    /// None: more digits than can be held.
    fn plus(&self, other: &Decimal) -> Option<Decimal> {
        let (own, others, places) = self.aligned(other)?;
        Some(Decimal { digits: own.checked_add(others)?, places }.trimmed())
    }

    fn times(&self, other: &Decimal) -> Option<Decimal> {
        let digits = self.digits.checked_mul(other.digits)?;
        Some(Decimal { digits, places: self.places.checked_add(other.places)? }.trimmed())
    }

    fn text(&self) -> String {
        let scale = 10i128.pow(self.places.min(38));
        let (whole, part) = (self.digits / scale, self.digits % scale);
        match self.places {
            0 => whole.to_string(),
            places => format!("{whole}.{part:0width$}", width = places as usize),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<String> {
        text.parse::<Vary>().unwrap_or_else(|error| panic!("{text}: {error}")).values
    }

    fn refusal(text: &str) -> String {
        text.parse::<Vary>().expect_err(text)
    }

    #[test]
    fn commas_in_brackets_and_quotes_do_not_split() {
        assert_eq!(values("flow.main.cc=bbr, cubic"), ["bbr", "cubic"]);
        assert_eq!(values(r#"flow.main.paths=["a"],["a","b"]"#), [r#"["a"]"#, r#"["a","b"]"#]);
        assert_eq!(
            values(r#"flow.main.workload={ file = "1 MB" },bulk,{ page = { http = "2" } }"#),
            [r#"{ file = "1 MB" }"#, "bulk", r#"{ page = { http = "2" } }"#]
        );
        assert_eq!(values(r#"name="a, b",c"#), ["a, b", "c"]);
        assert_eq!(values("link.a.trace=../up.txt,../down.txt"), ["../up.txt", "../down.txt"]);
    }

    #[test]
    fn ranges_are_exact_and_end_in_time() {
        let rates = values("link.a.rate=1..10 Mbit/s step 3 Mbit/s");
        assert_eq!(rates, ["1 Mbit/s", "4 Mbit/s", "7 Mbit/s", "10 Mbit/s"]);
        assert_eq!(values("l=0.1..0.3 % step 0.1 %"), ["0.1 %", "0.2 %", "0.3 %"]);
        assert_eq!(values("d=20 ms..100 ms step x2"), ["20 ms", "40 ms", "80 ms"]);
        assert_eq!(values("d=1..4 ms step x1.5"), ["1 ms", "1.5 ms", "2.25 ms", "3.375 ms"]);
        assert_eq!(values("flow.main.count=1..3 step 1"), ["1", "2", "3"]);
    }

    #[test]
    fn mistakes_say_what_to_write() {
        for (text, part) in [
            ("flow.main.cc", "flow.main.cc=bbr,cubic"),
            ("a=1..10 Mbit/s", "there is no step"),
            ("a=1..10 Mbit/s step 1 kbit/s", "units differ"),
            ("a=10..1 ms step 1 ms", "leads nowhere"),
            ("a=0..8 ms step x2", "leads nowhere"),
            ("a=1..8 ms step 0 ms", "leads nowhere"),
            ("a=0..1 s step 0.0001 s", "larger step"),
            ("a=b,,c", "empty"),
            ("a=[1,2", "stays open"),
            ("a=b,b", "twice"),
            ("seed=1,2", "--repeat"),
        ] {
            let said = refusal(text);
            assert!(said.contains(part), "{text}: {said}");
        }
    }
}
