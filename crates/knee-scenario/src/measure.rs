//! The measures that a claim can name: declared in `table.rs`, with their
//! formulas, which `knee-record` computes.

mod table;

use knee_units::Time;

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
            /// A number that a study's model computes, by its name after
            /// `model.`.
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
            /// The measure of a declared name with its parameters; none where
            /// one of them is missing.
            pub(crate) fn build(name: &str, given: &impl Parameters) -> Option<Measure> {
                match name {
                    $($($name => Some(Measure::$variant
                        $(( $(given.$key()?),+ ))?
                        $({ $($field: given.$field()?),+ })?
                    ),)*)*
                    _ => name.strip_prefix(MODEL).map(|model| Measure::Model(model.to_string())),
                }
            }

            /// Its name without statistic and parameters.
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

            /// How it condenses a distribution; none: it is a number anyway.
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
/// What their names begin with.
const MODEL: &str = "model.";

/// A measure as the table declares it.
#[derive(Debug)]
pub struct Declared {
    /// As a claim writes it, without a statistic.
    pub name: &'static str,
    /// Where docs/measures.md has it.
    pub chapter: &'static str,
    /// Its parameters, as [`Parameters`] calls them.
    parameters: &'static [&'static str],
    /// Of its values.
    pub unit: Unit,
    /// Which way is good.
    pub better: Better,
    /// What it is about.
    pub class: Class,
    /// What it can be taken of.
    pub subjects: &'static [Subject],
    /// It compares two targets itself: then its value is not divided by that
    /// of what the claim is relative to, and the claim must name one.
    pub compares: bool,
    /// What it is, in a line.
    pub meaning: &'static str,
    /// How it is computed.
    definition: &'static str,
}

impl Declared {
    /// Whether it is a distribution, so that a statistic follows its name:
    /// `rtt_p50`.
    pub fn is_distribution(&self) -> bool {
        self.parameters.contains(&"statistic")
    }

    /// Keys of the claim that it needs.
    pub fn needs(&self) -> impl Iterator<Item = &'static str> {
        self.parameters.iter().copied().filter(|key| !["statistic", "sizes"].contains(key))
    }

    /// Keys of the claim that it takes besides.
    pub fn takes(&self) -> &'static [&'static str] {
        if self.parameters.contains(&"sizes") { &["size_at_least", "size_below"] } else { &[] }
    }

    /// Its formula, in one line of Markdown.
    pub fn definition(&self) -> String {
        self.definition.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Its names in claims.
    pub fn names(&self) -> Vec<String> {
        match self.is_distribution() {
            true => STATISTICS.iter().map(|(end, _)| format!("{}_{end}", self.name)).collect(),
            false => vec![self.name.to_string()],
        }
    }

    /// The measure of a name in claims, with its statistic.
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

/// Where the parameters of a measure come from; none: it is not given.
#[allow(missing_docs, reason = "the fields of Measure say it")]
pub(crate) trait Parameters {
    fn statistic(&self) -> Option<Statistic>;
    fn sizes(&self) -> Option<SizeRange>;
    fn band(&self) -> Option<f64>;
    fn fraction(&self) -> Option<f64>;
    fn hold(&self) -> Option<Time>;
    fn phase(&self) -> Option<String>;
    fn path(&self) -> Option<String>;
    fn quality(&self) -> Option<u32>;
}

/// What may be a statistic among the parameters of a measure.
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

/// Which of two values one would rather have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// The larger one.
    More,
    /// The smaller one.
    Less,
    /// It depends.
    Neither,
}

/// What a measure is about, for tables of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// What an application or a transfer waits for, and what it gets.
    Waiting,
    /// Rates, and how much of what is allowed is used.
    Rate,
    /// How flows share.
    Fairness,
    /// Delays and queues.
    Delay,
    /// What is paid: bytes sent again or in vain, losses, memory.
    Cost,
    /// What weighs one against another, or says how it came about.
    Balance,
}

/// Transfers by their size: all of them by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SizeRange {
    /// None is smaller than so many bytes.
    pub at_least: u64,
    /// All are smaller than so many bytes; none: there is no bound.
    pub below: Option<u64>,
}

impl SizeRange {
    /// Transfers of any size.
    pub const ALL: SizeRange = SizeRange { at_least: 0, below: None };

    /// Whether a transfer of so many bytes counts.
    pub fn contains(self, bytes: u64) -> bool {
        bytes >= self.at_least && self.below.is_none_or(|below| bytes < below)
    }
}

/// How a distribution is condensed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Statistic {
    /// Smallest value.
    Min,
    /// 5th percentile.
    P5,
    /// Median.
    P50,
    /// 95th percentile.
    P95,
    /// 99th percentile.
    P99,
    /// Largest value.
    Max,
    /// Arithmetic mean over time.
    Mean,
}

/// What a measure's values are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bits per second.
    BitsPerSecond,
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// A part of a whole, `0..=1`.
    Fraction,
    /// A number without a unit.
    Number,
}

/// What a measure is taken of.
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
    /// The names of all measures, as a claim writes them.
    pub fn names() -> Vec<String> {
        MEASURES.iter().flat_map(Declared::names).collect()
    }

    /// Its declaration.
    pub fn declared(&self) -> &'static Declared {
        let name = self.declared_name();
        MEASURES.iter().find(|known| known.name == name).expect("both come from one table")
    }

    /// Its name as a claim writes it; parameters stand beside it there.
    pub fn name(&self) -> String {
        let name = self.declared_name();
        let end = |given| STATISTICS.iter().find(|(_, known)| *known == given);
        match (self, self.statistic().and_then(end)) {
            (Measure::Model(model), _) => format!("{MODEL}{model}"),
            (_, Some((end, _))) => format!("{name}_{end}"),
            (_, None) => name.to_string(),
        }
    }

    /// What its values are in.
    pub fn unit(&self) -> Unit {
        self.declared().unit
    }

    /// Whether it compares two targets itself; see [`Declared::compares`].
    pub fn compares(&self) -> bool {
        self.declared().compares
    }

    /// What it can be taken of.
    pub fn subjects(&self) -> &'static [Subject] {
        self.declared().subjects
    }
}
