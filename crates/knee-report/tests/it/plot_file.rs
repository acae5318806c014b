//! Tests figures as separate files.

use crate::common::{Dumbbell, dumbbell, summary};
use knee_record::{FlowSample, Records};
use knee_report::{Figure, Mark, Plot, PlotError, RunPage, plot_svg, run_page};

fn plot(figure: Figure) -> Plot<'static> {
    Plot { figure, flow: None, link: None, width: 720.0, marks: &[] }
}

/// Each figure in a file equals that of the page, mark by mark; only the style around it differs.
#[test]
fn a_file_has_the_drawing_of_the_page() {
    let records = dumbbell(Dumbbell { seconds: 20, ..Dumbbell::default() });
    let summary = summary("Two flows", &records, Vec::new());
    let page = RunPage {
        name: "",
        summary: &summary,
        records: &records,
        lead: None,
        logs: &[],
        scenario: "",
        command: "",
    };
    let page = run_page(&page).unwrap();
    let mut drawn = 0;
    for figure in Figure::ALL {
        let Ok(file) = plot_svg(&records, &plot(figure)) else { continue };
        let body = file.split_once("<g class=\"chart\">").unwrap().1;
        let body = body.rsplit_once("</g>").unwrap().0;
        assert!(page.contains(body), "{}", figure.name());
        drawn += 1;
    }
    // All except the capacity of a link with a changing rate, the map of a mix's sizes and times, and
    // the finishing times of several paths.
    assert_eq!(drawn, Figure::ALL.len() - 3);
}

/// A file does not depend on the page's styles: its colours are literal. It is well-formed XML.
#[test]
fn a_file_stands_by_itself() {
    let mut records = dumbbell(Dumbbell { seconds: 5, ..Dumbbell::default() });
    for flow in &mut records.flows {
        flow.name = "a <b> & \"c\"".to_string();
    }
    let file = plot_svg(&records, &plot(Figure::Throughput)).unwrap();
    assert!(file.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
    assert!(file.contains("width=\"720\"") && !file.contains("var(") && !file.contains("url("));
    assert!(file.contains("a &lt;b&gt; &amp; &quot;c&quot;[1]"));
    let (opened, closed) = (file.matches("<g").count(), file.matches("</g>").count());
    assert_eq!(opened, closed);
}

#[test]
fn what_cannot_be_drawn_is_told_with_what_can() {
    let records = dumbbell(Dumbbell { seconds: 5, ..Dumbbell::default() });
    let told = |result: Result<String, PlotError>| result.unwrap_err().to_string();
    let steady = told(plot_svg(&records, &plot(Figure::Capacity)));
    assert!(
        steady.contains("nothing to draw for capacity") && steady.contains("throughput, delay")
    );
    let unknown = Plot { flow: Some("cubic"), ..plot(Figure::Bandwidth) };
    assert!(told(plot_svg(&records, &unknown)).contains("it has bbr[0], bbr[1]"));
    let empty = told(plot_svg(&Records::default(), &plot(Figure::Delay)));
    assert!(empty.contains("no samples"), "{empty}");
}

/// The picture of the second flow's controller differs from that of the first.
#[test]
fn a_flow_can_be_picked() {
    let mut records = dumbbell(Dumbbell { seconds: 5, ..Dumbbell::default() });
    let levelled = |row: FlowSample| match row.flow {
        1 => FlowSample { bandwidth_estimate_bps: 1_000_000, ..row },
        _ => row,
    };
    records.samples = records.samples.iter().map(levelled).collect();
    let of = |flow| plot_svg(&records, &Plot { flow: Some(flow), ..plot(Figure::Bandwidth) });
    let level = |svg: String| {
        let line = svg.split("<path class=\"estimate\" d=\"").nth(1).unwrap().to_string();
        line.split('"').next().unwrap().matches("l").count() + line.matches(" 0 ").count()
    };
    assert_ne!(of("bbr[0]").unwrap(), of("bbr[1]").unwrap());
    assert!(level(of("bbr[1]").unwrap()) > 0);
}

/// A mark lies between the labels of the axis where its value does: by the places of two labels.
#[test]
fn a_mark_lies_where_the_labels_say() {
    let records = dumbbell(Dumbbell { seconds: 20, ..Dumbbell::default() });
    let texts = ["half=5 Mbit/s", "joins @ 7.5 s"];
    let marks: Vec<Mark> =
        texts.iter().map(|text| Mark::parse(text, Figure::Throughput).unwrap()).collect();
    let file = plot_svg(&records, &Plot { marks: &marks, ..plot(Figure::Throughput) }).unwrap();
    // Place and value of each label of the axis that is anchored so.
    let labels = |anchor: &str, side: &str| -> Vec<(f64, f64)> {
        let grid = file.split_once("<g class=\"grid\">").unwrap().1;
        let grid = grid.split_once("</g>").unwrap().0;
        let of_axis = grid.split("<text ").skip(1).filter(|text| text.contains(anchor));
        of_axis
            .map(|text| {
                let place = text.split_once(side).unwrap().1.split_once('"').unwrap().0;
                let value = text.split_once('>').unwrap().1.split_once('<').unwrap().0;
                (place.parse().unwrap(), value.parse().unwrap())
            })
            .collect()
    };
    let at = |labels: &[(f64, f64)], value: f64| {
        let [(from, low), .., (to, high)] = labels else { panic!("{labels:?}") };
        from + (value - low) * (to - from) / (high - low)
    };
    // The line before its name; another shows when the path is full.
    let before = file.split_once(">half, 5 Mbit/s<").unwrap().0;
    let drawn = before.rsplit_once("class=\"reference\" d=\"M54 ").unwrap().1;
    let level: f64 = drawn.split_once('H').unwrap().0.parse().unwrap();
    // A label's foot is four units below its line.
    let expected = at(&labels("\"end\"", " y=\""), 5.0) - 4.0;
    assert!((level - expected).abs() < 0.3, "{level} {expected}");
    let upright = at(&labels("\"middle\"", "x=\""), 7.5);
    assert!(file.contains(&format!("class=\"reference\" d=\"M{upright:.0} ")), "{upright}");
    assert!(file.contains(">half, 5 Mbit/s<") && file.contains(">joins, at 7.5 s<"));
    let long =
        [Mark::parse(&format!("{}=5 Mbit/s", "long ".repeat(20)), Figure::Throughput).unwrap()];
    let cut = plot_svg(&records, &Plot { marks: &long, ..plot(Figure::Throughput) }).unwrap();
    assert!(cut.contains(">long long long long long lo…, 5 Mbit/s<"));
    let outside = [Mark::parse("end@21 s", Figure::Throughput).unwrap()];
    let error = plot_svg(&records, &Plot { marks: &outside, ..plot(Figure::Throughput) });
    assert!(matches!(error, Err(PlotError::Outside(..))), "{error:?}");
}

/// Of two marks that nearly coincide, the lower has its name below the line.
#[test]
fn names_of_close_marks_do_not_overlap() {
    let records = dumbbell(Dumbbell::default());
    let parse = |text| Mark::parse(text, Figure::Throughput).unwrap();
    for marks in [["low=5 Mbit/s", "high=5.1 Mbit/s"], ["high=5.1 Mbit/s", "low=5 Mbit/s"]] {
        let marks = marks.map(parse);
        let file = plot_svg(&records, &Plot { marks: &marks, ..plot(Figure::Throughput) }).unwrap();
        let foot = |name: &str| -> f64 {
            let before = file.split_once(&format!(">{name}, ")).unwrap().0;
            let place = before.rsplit_once(" y=\"").unwrap().1;
            place.split_once('"').unwrap().0.parse().unwrap()
        };
        assert!(foot("low") - foot("high") > 12.0, "{} {}", foot("low"), foot("high"));
    }
}

/// A mark far from the curves is on the axis, in figures whose axis begins at zero or elsewhere.
#[test]
fn a_mark_far_away_is_drawn() {
    let records = dumbbell(Dumbbell::default());
    for (figure, text) in [
        (Figure::Throughput, "far=900 Mbit/s"),
        (Figure::Delay, "far=9 s"),
        (Figure::MinRtt, "far=1 us"),
    ] {
        let marks = [Mark::parse(text, figure).unwrap()];
        let file = plot_svg(&records, &Plot { marks: &marks, ..plot(figure) }).unwrap();
        let number =
            |text: &str, end: char| -> f64 { text.split_once(end).unwrap().0.parse().unwrap() };
        let frame = file.split_once("<svg class=\"inside\" ").unwrap().1;
        let side = |name: &str| number(frame.split_once(name).unwrap().1, '"');
        let (top, height) = (side(" y=\""), side(" height=\""));
        let before = file.split_once(">far, ").unwrap().0;
        let level = number(before.rsplit_once("class=\"reference\" d=\"M54 ").unwrap().1, 'H');
        assert!((top..=top + height).contains(&level), "{}: {level}", figure.name());
    }
}

#[test]
fn what_is_no_mark_is_told() {
    let told = |text, figure| Mark::parse(text, figure).unwrap_err().to_string();
    assert!(told("80 ms", Figure::Delay).contains("lacks a name or a value"));
    assert!(told("=80 ms", Figure::Delay).contains("lacks a name or a value"));
    assert!(told("target=80 Mbit/s", Figure::Delay).contains("target: "));
    assert!(told("target=0 ms", Figure::Delay).contains("zero"));
    assert!(told("joins@8 s", Figure::RttDistribution).contains("no axis"));
    assert!(told("large=8 MB", Figure::SizeTime).contains("no axis"));
    for (figure, value) in [
        (Figure::Delay, "80 ms"),
        (Figure::RttDistribution, "80 ms"),
        (Figure::Window, "80 kB"),
        (Figure::Capacity, "80 Mbit/s"),
    ] {
        assert!(Mark::parse(&format!("a = b={value}"), figure).is_ok(), "{}", figure.name());
    }
}
