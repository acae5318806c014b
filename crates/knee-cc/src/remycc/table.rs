//! Rule tables: the action of a RemyCC in each region of its memory, and the
//! file format for them.
//!
//! ```text
//!   knee-rule-table 1
//!   command = knee train paths/*.toml --rounds 4      provenance, see REQUIRED
//!   rules
//!   split rtt_ratio 1.4                               below it, then from it on
//!     rule multiple 1 increment 2 intersend_ms 0.6
//!     rule multiple 0.9 increment 1 intersend_ms 1.2
//!   end 2                                             number of rules
//! ```
//! The paper stores boxes that fill the memory space; a tree of splits is
//! equivalent and cannot have a gap or an overlap. Indentation and empty lines
//! have no meaning, `#` begins a comment line.

use std::fmt;

/// Version of the file format.
pub const VERSION: u32 = 1;
/// First word of every table.
const MAGIC: &str = "knee-rule-table";
/// Largest number of rules: more than the paper's tables have (162 to 204).
const RULES_MAX: usize = 4096;
/// Largest depth of the tree, so that a look-up is short.
const DEPTH_MAX: usize = 32;
/// Provenance keys that every table must have.
const REQUIRED: [&str; 4] = ["command", "knee", "trained_on", "seeds"];

/// What a RemyCC remembers (section 4.1 of the paper).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Memory {
    /// Mean time between acknowledgements, ms.
    pub ack_ewma_ms: f64,
    /// Mean time between the sending times of the segments acknowledged, ms.
    pub send_ewma_ms: f64,
    /// Ratio of the last RTT to the smallest; zero before the first RTT.
    pub rtt_ratio: f64,
}

/// One of the three parts of a [`Memory`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dimension {
    /// [`Memory::ack_ewma_ms`].
    AckEwma,
    /// [`Memory::send_ewma_ms`].
    SendEwma,
    /// [`Memory::rtt_ratio`].
    RttRatio,
}

impl Dimension {
    /// All dimensions.
    pub const ALL: [Dimension; 3] = [Dimension::AckEwma, Dimension::SendEwma, Dimension::RttRatio];

    /// Returns the name in files.
    pub fn name(self) -> &'static str {
        match self {
            Dimension::AckEwma => "ack_ewma_ms",
            Dimension::SendEwma => "send_ewma_ms",
            Dimension::RttRatio => "rtt_ratio",
        }
    }

    /// Returns the value of this dimension.
    #[inline]
    pub fn of(self, memory: &Memory) -> f64 {
        match self {
            Dimension::AckEwma => memory.ack_ewma_ms,
            Dimension::SendEwma => memory.send_ewma_ms,
            Dimension::RttRatio => memory.rtt_ratio,
        }
    }
}

/// The action for each segment acknowledged (section 4.2 of the paper).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Action {
    /// Multiple of the window.
    pub multiple: f64,
    /// Segments added to the product.
    pub increment: f64,
    /// Shortest time between two segments, ms.
    pub intersend_ms: f64,
}

impl Action {
    /// The smallest values.
    pub const LEAST: Action = Action { multiple: 0.0, increment: -64.0, intersend_ms: 0.001 };
    /// The largest values.
    pub const MOST: Action = Action { multiple: 2.0, increment: 256.0, intersend_ms: 1000.0 };

    /// Returns the nearest action within the bounds.
    #[must_use]
    pub fn clamped(self) -> Action {
        let (least, most) = (Action::LEAST, Action::MOST);
        Action {
            multiple: self.multiple.clamp(least.multiple, most.multiple),
            increment: self.increment.clamp(least.increment, most.increment),
            intersend_ms: self.intersend_ms.clamp(least.intersend_ms, most.intersend_ms),
        }
    }
}

/// A node of the tree, in the order of the file: the part below a split follows
/// it immediately.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Node {
    Split { dimension: Dimension, at: f64, from: u32 },
    Rule(Action),
}

/// A rule table.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleTable {
    /// How the table was made: keys and values, in the order of the file.
    pub provenance: Vec<(String, String)>,
    nodes: Vec<Node>,
}

/// An error in a table, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableError {
    /// Line number, from one.
    pub line: usize,
    /// What is wrong.
    pub problem: String,
    /// How to fix it.
    pub advice: String,
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}; {}", self.line, self.problem, self.advice)
    }
}

impl std::error::Error for TableError {}

impl RuleTable {
    /// Creates a table with one rule for the whole memory.
    pub fn single(action: Action) -> RuleTable {
        RuleTable { provenance: Vec::new(), nodes: vec![Node::Rule(action)] }
    }

    /// Returns the number of the rule for a memory. It is the index of the rule's
    /// node, so the numbers have gaps where splits are.
    #[inline]
    pub fn find(&self, memory: &Memory) -> usize {
        let mut at = 0;
        while let Node::Split { dimension, at: value, from } = self.nodes[at] {
            at = if dimension.of(memory) < value { at + 1 } else { from as usize };
        }
        at
    }

    /// Returns the action of the rule with this number.
    ///
    /// # Panics
    /// If there is no such rule.
    #[inline]
    pub fn action(&self, rule: usize) -> Action {
        match self.nodes[rule] {
            Node::Rule(action) => action,
            Node::Split { .. } => unreachable!("a split is no rule"),
        }
    }

    /// Returns the numbers of all rules, ascending.
    pub fn rules(&self) -> impl Iterator<Item = usize> {
        let rule = |(number, node): (usize, &Node)| matches!(node, Node::Rule(_)).then_some(number);
        self.nodes.iter().enumerate().filter_map(rule)
    }

    /// Returns the largest number of a rule plus one.
    pub fn size(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the table with another action for one rule.
    #[must_use]
    pub fn with_action(&self, rule: usize, action: Action) -> RuleTable {
        let mut table = self.clone();
        table.nodes[rule] = Node::Rule(action.clamped());
        table
    }

    /// Returns the table with a rule split into two with the same action: the
    /// one below `value` has the number `rule + 1`, the other one `rule + 2`.
    #[must_use]
    pub fn split(&self, rule: usize, dimension: Dimension, value: f64) -> RuleTable {
        let action = self.action(rule);
        let mut table = self.clone();
        for node in &mut table.nodes {
            if let Node::Split { from, .. } = node
                && *from as usize > rule
            {
                *from += 2;
            }
        }
        let split = Node::Split { dimension, at: value, from: rule as u32 + 2 };
        let both = [split, Node::Rule(action), Node::Rule(action)];
        table.nodes.splice(rule..=rule, both);
        table
    }

    /// Parses a table from a file's contents.
    ///
    /// # Errors
    /// The first error in the text, or a version other than [`VERSION`].
    pub fn read(text: &str) -> Result<RuleTable, TableError> {
        Reader::new(text).table()
    }
}

impl fmt::Display for RuleTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{MAGIC} {VERSION}")?;
        self.provenance.iter().try_for_each(|(key, value)| writeln!(f, "{key} = {value}"))?;
        writeln!(f, "rules")?;
        let mut depths = vec![0];
        for node in &self.nodes {
            let depth = depths.pop().unwrap_or(0);
            write!(f, "{:1$}", "", depth * 2)?;
            match node {
                Node::Split { dimension, at, .. } => {
                    writeln!(f, "split {} {at}", dimension.name())?;
                    depths.extend([depth + 1, depth + 1]);
                }
                Node::Rule(Action { multiple, increment, intersend_ms }) => writeln!(
                    f,
                    "rule multiple {multiple} increment {increment} intersend_ms {intersend_ms}"
                )?,
            }
        }
        writeln!(f, "end {}", self.rules().count())
    }
}

/// Reads the significant lines one after the other.
struct Reader<'t> {
    lines: Vec<(usize, &'t str)>,
    next: usize,
    nodes: Vec<Node>,
}

impl<'t> Reader<'t> {
    fn new(text: &'t str) -> Reader<'t> {
        let lines = text.lines().zip(1..).map(|(line, number)| (number, line.trim()));
        let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        Reader { lines: lines.collect(), next: 0, nodes: Vec::new() }
    }

    /// Returns the next line; at the end, an empty one numbered after the last.
    fn take(&mut self) -> (usize, &'t str) {
        let after = self.lines.last().map_or(1, |(number, _)| number + 1);
        let line = self.lines.get(self.next).copied().unwrap_or((after, ""));
        self.next += 1;
        line
    }

    fn table(mut self) -> Result<RuleTable, TableError> {
        self.version()?;
        let provenance = self.provenance()?;
        self.node(0)?;
        let rules = self.nodes.iter().filter(|node| matches!(node, Node::Rule(_))).count();
        let (line, text) = self.take();
        if text != format!("end {rules}") {
            let problem = match text {
                "" => "the table ends unexpectedly".to_string(),
                text => format!("unexpected \"{text}\" after {rules} rules"),
            };
            return Err(wrong(line, problem, format!("the last line is end {rules}")));
        }
        match self.take() {
            (_, "") => Ok(RuleTable { provenance, nodes: self.nodes }),
            (line, _) => Err(wrong(line, "something follows the end".to_string(), REMOVE)),
        }
    }

    fn version(&mut self) -> Result<(), TableError> {
        let (line, text) = self.take();
        let version = text.strip_prefix(MAGIC).map(str::trim);
        match version {
            Some(version) if version == VERSION.to_string() => Ok(()),
            Some(version) => {
                let problem = format!("the rule table has version {version:?}");
                Err(wrong(
                    line,
                    problem,
                    format!("this Knee reads version {VERSION}: train it again"),
                ))
            }
            None => {
                let problem = "this is not a rule table".to_string();
                Err(wrong(line, problem, format!("one begins with {MAGIC} {VERSION}")))
            }
        }
    }

    /// Reads the provenance, up to and including the line `rules`.
    fn provenance(&mut self) -> Result<Vec<(String, String)>, TableError> {
        let mut found: Vec<(String, String)> = Vec::new();
        loop {
            let (line, text) = self.take();
            if text == "rules" {
                let has = |key: &&str| found.iter().any(|(known, _)| known == key);
                return match REQUIRED.iter().find(|key| !has(key)) {
                    None => Ok(found),
                    Some(key) => {
                        let problem = format!("the provenance has no {key}");
                        Err(wrong(line, problem, format!("write {key} = … before the rules")))
                    }
                };
            }
            let Some((key, value)) = text.split_once(" = ") else {
                let problem = match text {
                    "" => "the table ends unexpectedly".to_string(),
                    text => format!("\"{text}\" is neither provenance nor the line rules"),
                };
                return Err(wrong(line, problem, "write key = value, or rules"));
            };
            found.push((key.to_string(), value.to_string()));
        }
    }

    /// Reads a rule, or a split with the nodes below it.
    fn node(&mut self, depth: usize) -> Result<(), TableError> {
        let (line, text) = self.take();
        if depth > DEPTH_MAX || self.nodes.len() > 2 * RULES_MAX {
            let problem = "the table is too large".to_string();
            let advice = format!("at most {RULES_MAX} rules, {DEPTH_MAX} splits deep");
            return Err(wrong(line, problem, advice));
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        match words[..] {
            ["split", name, value] => {
                let named = |dimension: &Dimension| dimension.name() == name;
                let Some(dimension) = Dimension::ALL.into_iter().find(named) else {
                    let problem = format!("\"{name}\" is not a dimension of the memory");
                    let known = Dimension::ALL.map(Dimension::name).join(", ");
                    return Err(wrong(line, problem, format!("write one of {known}")));
                };
                let at = number(line, name, value, 0.0, f64::MAX)?;
                let place = self.nodes.len();
                self.nodes.push(Node::Split { dimension, at, from: 0 });
                self.node(depth + 1)?;
                let from = self.nodes.len() as u32;
                self.nodes[place] = Node::Split { dimension, at, from };
                self.node(depth + 1)
            }
            ["rule", "multiple", multiple, "increment", increment, "intersend_ms", intersend] => {
                let (least, most) = (Action::LEAST, Action::MOST);
                self.nodes.push(Node::Rule(Action {
                    multiple: number(line, "multiple", multiple, least.multiple, most.multiple)?,
                    increment: number(
                        line,
                        "increment",
                        increment,
                        least.increment,
                        most.increment,
                    )?,
                    intersend_ms: number(
                        line,
                        "intersend_ms",
                        intersend,
                        least.intersend_ms,
                        most.intersend_ms,
                    )?,
                }));
                Ok(())
            }
            [] => {
                Err(wrong(line, "the table ends unexpectedly".to_string(), "a split has two parts"))
            }
            _ => {
                let problem = format!("\"{text}\" is neither a split nor a rule");
                let advice =
                    "write split PART VALUE, or rule multiple M increment I intersend_ms T";
                Err(wrong(line, problem, advice))
            }
        }
    }
}

const REMOVE: &str = "remove it";

fn number(line: usize, name: &str, text: &str, least: f64, most: f64) -> Result<f64, TableError> {
    let value = text.parse().ok().filter(|value| (least..=most).contains(value));
    value.ok_or_else(|| {
        let problem = format!("{name} cannot be {text}");
        let advice = match most == f64::MAX {
            true => "write a number of zero or more".to_string(),
            false => format!("write a number from {least} to {most}"),
        };
        wrong(line, problem, advice)
    })
}

fn wrong(line: usize, problem: String, advice: impl Into<String>) -> TableError {
    TableError { line, problem, advice: advice.into() }
}
