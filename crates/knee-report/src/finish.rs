//! When each path of a flow has delivered its part: a bar per path, the completion time of the file,
//! and the time that it would take at the rates of all paths together.

use crate::applications::shortened;
use crate::drawing::{Axis, Drawing, WIDTH};
use knee_present::words::time_us;
use knee_record::{FlowView, RunView, Window, measure};
use knee_scenario::Measure;

const LEFT: f64 = 130.0;
const RIGHT: f64 = WIDTH - 70.0;
/// Heights of a flow's heading, of a path's row, and of the axis with the key.
const HEADING: f64 = 26.0;
const ROW: f64 = 18.0;
const FOOT: f64 = 62.0;

/// A flow and its times, seconds from its start.
struct Group<'f, 'a> {
    flow: &'f FlowView<'a>,
    /// By path; none: it delivered nothing.
    paths: Vec<Option<f64>>,
    /// T and T' of a file.
    done: Option<f64>,
    ideal: Option<f64>,
}

impl<'f, 'a> Group<'f, 'a> {
    fn of(run: &RunView<'a>, flow: &'f FlowView<'a>) -> Group<'f, 'a> {
        let value = |of: Measure| {
            let value = measure(run, &of, &flow.record.label(), Window::default());
            value.ok().filter(|value| value.is_finite())
        };
        let path = |name: &String| value(Measure::PathFinishTime(name.clone()));
        let (done, tail) = (value(Measure::CompletionTime), value(Measure::TailDelay));
        Group {
            flow,
            paths: flow.paths.iter().map(|one| path(&one.record.name)).collect(),
            done,
            ideal: done.zip(tail).map(|(done, tail)| done - tail),
        }
    }

    fn height(&self) -> f64 {
        HEADING + ROW * self.paths.len() as f64
    }
}

/// Draws flows over several paths one below the other; `None` if no path delivered anything.
pub(crate) fn finish<'a>(run: &RunView<'a>, flows: &[&FlowView<'a>]) -> Option<Drawing> {
    let groups: Vec<Group<'_, '_>> = flows.iter().map(|flow| Group::of(run, flow)).collect();
    let times = groups.iter().flat_map(|group| group.paths.iter().flatten().chain(&group.done));
    let last = times.copied().reduce(f64::max)?;
    let bottom = groups.iter().map(Group::height).sum::<f64>() + 4.0;
    let mut drawing = Drawing::new(bottom + FOOT, "when each path has delivered its part");
    let axis = Axis::from_zero(last, LEFT, RIGHT);
    drawing.axis(&axis, HEADING - 4.0, bottom, "time since the start (s)");
    let mut top = 0.0;
    for group in &groups {
        draw(&mut drawing, &axis, group, top);
        top += group.height();
    }
    let key = "solid: the file is complete (T); dashed: at the rates of all paths together (T')";
    drawing.words("small", "end", (RIGHT, bottom + 52.0), key);
    Some(drawing)
}

fn draw(drawing: &mut Drawing, axis: &Axis, group: &Group<'_, '_>, top: f64) {
    let record = group.flow.record;
    let title = format!("{}, {}", record.label(), record.scheduler);
    drawing.words("front", "start", (6.0, top + 17.0), title);
    let first = top + HEADING;
    for (row, (path, time)) in group.flow.paths.iter().zip(&group.paths).enumerate() {
        let y = first + ROW * row as f64;
        let name = &path.record.name;
        drawing.words("small", "end", (LEFT - 6.0, y + 13.0), shortened(name, 18));
        let said = time_us(time.map(|time| time * 1e6));
        match time {
            Some(time) => {
                let corners = [LEFT, y + 3.0, axis.at(*time), y + ROW - 2.0];
                drawing.bar("waiting", corners, format!("{name}: {said}"));
                drawing.words("small", "end", (WIDTH - 6.0, y + 13.0), said);
            }
            None => drawing.words("small", "end", (WIDTH - 6.0, y + 13.0), "nothing"),
        }
    }
    let last = top + group.height() + 1.0;
    for (class, time) in [("", group.done), ("edge", group.ideal)] {
        if let Some(x) = time.map(|time| axis.at(time)) {
            drawing.line(class, &[(x, first - 2.0), (x, last)]);
        }
    }
}
