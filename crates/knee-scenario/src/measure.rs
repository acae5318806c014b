//! The measures that a claim can name. They are declared in `table.rs` with their formulas, and
//! computed by `knee-record`.

mod table;

use knee_units::Time;
use knee_units::statistics::Statistic;

macro_rules! declare {
    ($(
        chapter $chapter:literal { $(
            $(#[doc = $line:literal])*
            $variant:ident $(( $($key:ident: $type:ty),+ ))?
            $({ $($(#[doc = $about:literal])* $field:ident: $field_type:ty),+ $(,)? })?
            = $name:literal, $unit:ident, $better:ident, $class:ident, $meaning:literal => {
                $(of $subject:ident |$found:pat_param| $value:expr;)+
                $(against |$pair:ident, $window:ident| $compared:expr;)?
                $(interval $interval:expr;)?
                $(column [$($cell:tt)?] $column:literal $(as $column_unit:ident)?, $title:literal;)*
                $(within [$($near:tt)?] $tolerance:expr;)?
            }
        )* }
    )* models { $(
        $(#[doc = $model_line:literal])*
        $model:literal, $model_meaning:literal;
    )* }) => {
        /// A number computed from records, with the parameters that it takes.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Measure {
            $($(
                $(#[doc = $line])*
                $variant $(( $($type),+ ))? $({ $($(#[doc = $about])* $field: $field_type),+ })?,
            )*)*
            /// A number that a study's model computes; holds the name after `model.`.
            Model(String),
        }

        /// All measures, in the order of docs/measures.md; those of models last.
        pub static MEASURES: &[Declared] = &[
            $($(Declared {
                name: $name,
                chapter: $chapter,
                parameters: &[$($(stringify!($key)),+)? $($(stringify!($field)),+)?],
                unit: Unit::$unit,
                better: Better::$better,
                class: Class::$class,
                subjects: &[$(Subject::$subject),+],
                compares: {
                    let pair: &[&str] = &[$(stringify!($pair))?];
                    !pair.is_empty()
                },
                meaning: $meaning,
                definition: concat!($($line),*),
            },)*)*
            $(Declared {
                name: $model,
                chapter: MODELS,
                parameters: &[],
                unit: Unit::Number,
                better: Better::Neither,
                class: Class::Balance,
                subjects: &[Subject::Model],
                compares: false,
                meaning: $model_meaning,
                definition: concat!($($model_line),*),
            },)*
        ];

        impl Measure {
            /// Returns the measure of a declared name with its parameters; `None` if one of them is
            /// missing.
            pub(crate) fn build(name: &str, given: &impl Parameters) -> Option<Measure> {
                match name {
                    $($($name => Some(Measure::$variant
                        $(( $(given.$key()?),+ ))?
                        $({ $($field: given.$field()?),+ })?
                    ),)*)*
                    _ => name.strip_prefix(MODEL).map(|model| Measure::Model(model.to_string())),
                }
            }

            /// Returns the name without statistic and parameters.
            fn declared_name(&self) -> &'static str {
                match self {
                    $($(Measure::$variant { .. } => $name,)*)*
                    Measure::Model(name) => {
                        let of_models = [$($model),*];
                        let named = |known: &&str| known.strip_prefix(MODEL) == Some(name);
                        of_models.into_iter().find(named).unwrap_or(of_models[0])
                    }
                }
            }

            /// Returns the statistic of a distribution; `None` for a plain number.
            fn statistic(&self) -> Option<Statistic> {
                match self {
                    $($(Measure::$variant $(( $($key),+ ))? $({ $($field: _),+ })? => {
                        let given: &[Option<Statistic>] = &[$($($key.as_statistic()),+)?];
                        given.iter().copied().flatten().next()
                    })*)*
                    Measure::Model(_) => None,
                }
            }
        }
    };
}

crate::measures!(declare);

/// Chapter of the measures of models.
const MODELS: &str = "Of models";
/// Prefix of their names.
const MODEL: &str = "model.";

/// The declaration of a measure.
#[derive(Debug)]
pub struct Declared {
    /// Name in claims, without a statistic.
    pub name: &'static str,
    /// Chapter of docs/measures.md.
    pub chapter: &'static str,
    /// Its parameters, named as in [`Parameters`].
    parameters: &'static [&'static str],
    /// Unit of its values.
    pub unit: Unit,
    /// Which direction is better.
    pub better: Better,
    /// What the measure is about.
    pub class: Class,
    /// What it can be measured on.
    pub subjects: &'static [Subject],
    /// Whether it compares two targets itself. The claim must then name the second one, and the
    /// value is not divided by the second one's.
    pub compares: bool,
    /// Meaning, in a line.
    pub meaning: &'static str,
    /// Formula.
    definition: &'static str,
}

impl Declared {
    /// Returns whether it is a distribution, so that a statistic follows its name: `rtt_p50`.
    pub fn is_distribution(&self) -> bool {
        self.parameters.contains(&"statistic")
    }

    /// Returns the keys of the claim that it needs.
    pub fn needs(&self) -> impl Iterator<Item = &'static str> {
        self.parameters.iter().copied().filter(|key| !["statistic", "sizes"].contains(key))
    }

    /// Returns the optional keys of the claim.
    pub fn takes(&self) -> &'static [&'static str] {
        if self.parameters.contains(&"sizes") { &["size_at_least", "size_below"] } else { &[] }
    }

    /// Returns the formula, as one line of Markdown.
    pub fn definition(&self) -> String {
        self.definition.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Returns its names in claims.
    pub fn names(&self) -> Vec<String> {
        match self.is_distribution() {
            true => STATISTICS.iter().map(|(end, _)| format!("{}_{end}", self.name)).collect(),
            false => vec![self.name.to_string()],
        }
    }

    /// Finds the measure with a name in claims, and its statistic.
    pub(crate) fn find(name: &str) -> Option<(&'static Declared, Option<Statistic>)> {
        let exact = MEASURES.iter().find(|known| known.name == name && !known.is_distribution());
        exact.map(|known| (known, None)).or_else(|| {
            let (base, end) = name.rsplit_once('_')?;
            let (_, statistic) = STATISTICS.iter().find(|(known, _)| *known == end)?;
            let known = MEASURES.iter().find(|known| known.name == base)?;
            known.is_distribution().then_some((known, Some(*statistic)))
        })
    }
}

/// Source of a measure's parameters; `None` if one is not given.
#[allow(missing_docs, reason = "the fields of Measure say it")]
pub(crate) trait Parameters {
    fn statistic(&self) -> Option<Statistic>;
    fn sizes(&self) -> Option<SizeRange>;
    fn band(&self) -> Option<f64>;
    fn fraction(&self) -> Option<f64>;
    fn hold(&self) -> Option<Time>;
    fn phase(&self) -> Option<String>;
    fn next(&self) -> Option<String>;
    fn path(&self) -> Option<String>;
    fn quality(&self) -> Option<u32>;
}

/// Returns a parameter as a statistic if it is one.
trait AsStatistic {
    fn as_statistic(&self) -> Option<Statistic> {
        None
    }
}
impl AsStatistic for Statistic {
    fn as_statistic(&self) -> Option<Statistic> {
        Some(*self)
    }
}
impl AsStatistic for SizeRange {}
impl AsStatistic for String {}
impl AsStatistic for u32 {}

/// Which of two values is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// The larger one.
    More,
    /// The smaller one.
    Less,
    /// Neither is better in general.
    Neither,
}

/// What a measure is about; used to order tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// What an application or a transfer waits for or receives.
    Waiting,
    /// Rates, and how much of the capacity is used.
    Rate,
    /// How flows share capacity.
    Fairness,
    /// Delays and queues.
    Delay,
    /// Costs: bytes retransmitted or wasted, losses, memory.
    Cost,
    /// Trade-offs between these, and how a result came about.
    Balance,
}

/// A range of transfer sizes; all sizes by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SizeRange {
    /// Smallest size, bytes.
    pub at_least: u64,
    /// All sizes are below this, bytes; `None` if there is no upper bound.
    pub below: Option<u64>,
}

impl SizeRange {
    /// Transfers of any size.
    pub const ALL: SizeRange = SizeRange { at_least: 0, below: None };

    /// Returns whether a transfer of this size is in the range.
    pub fn contains(self, bytes: u64) -> bool {
        bytes >= self.at_least && self.below.is_none_or(|below| bytes < below)
    }
}

/// Unit of a measure's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bits per second.
    BitsPerSecond,
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// A fraction, `0..=1`.
    Fraction,
    /// A number without a unit.
    Number,
}

/// What a measure applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Flows.
    Flows,
    /// A link.
    Link,
    /// A model of a study.
    Model,
}

const STATISTICS: [(&str, Statistic); 7] = [
    ("min", Statistic::Min),
    ("p5", Statistic::P5),
    ("p50", Statistic::P50),
    ("p95", Statistic::P95),
    ("p99", Statistic::P99),
    ("max", Statistic::Max),
    ("mean", Statistic::Mean),
];

impl Measure {
    /// Returns the names of all measures, as a claim writes them.
    pub fn names() -> Vec<String> {
        MEASURES.iter().flat_map(Declared::names).collect()
    }

    /// Returns the declaration.
    pub fn declared(&self) -> &'static Declared {
        let name = self.declared_name();
        MEASURES.iter().find(|known| known.name == name).expect("both come from one table")
    }

    /// Returns the name as a claim writes it, without parameters.
    pub fn name(&self) -> String {
        let name = self.declared_name();
        let end = |given| STATISTICS.iter().find(|(_, known)| *known == given);
        match (self, self.statistic().and_then(end)) {
            (Measure::Model(model), _) => format!("{MODEL}{model}"),
            (_, Some((end, _))) => format!("{name}_{end}"),
            (_, None) => name.to_string(),
        }
    }

    /// Returns the unit of its values.
    pub fn unit(&self) -> Unit {
        self.declared().unit
    }

    /// Returns whether it compares two targets itself; see [`Declared::compares`].
    pub fn compares(&self) -> bool {
        self.declared().compares
    }

    /// Returns what it can be measured on.
    pub fn subjects(&self) -> &'static [Subject] {
        self.declared().subjects
    }
}
