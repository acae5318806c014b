//! Asserts, once, that a configuration meets its requirements.

use crate::aqm::Aqm;
use crate::config::{Buffer, Config, Device, Loss, RateModel, Steps};
use crate::server::period;
use knee_units::Time;

pub(crate) fn assert_possible(config: &Config) {
    assert_steps(&config.delay.base);
    if let Some(jitter) = &config.delay.jitter {
        assert_steps(&jitter.amount);
        assert!((0.0..=1.0).contains(&jitter.share), "a share is within 0 and 1");
        let most = jitter.amount.0.iter().map(|(_, amount)| *amount).min();
        assert!(most >= Some(jitter.least), "jitter is no less than its least");
    }
    match &config.rate {
        RateModel::Unlimited | RateModel::Constant(_) => {}
        RateModel::Steps(steps) => assert_steps(steps),
        RateModel::Trace(trace) => {
            assert!(period(trace) > 0, "a trace ends after time zero");
            assert!(trace.opportunities_ms.is_sorted(), "a trace does not descend");
            assert!(trace.offset.as_nanos() < period(trace), "a trace is longer than its offset");
        }
    }
    assert_loss(&config.loss);
    config.aqm.assert_possible();
    let outages = config.down.iter().flat_map(|(from, until)| [from, until]);
    assert!(outages.is_sorted(), "outages are sorted and disjoint");
    let holds = config.hold.iter().flat_map(|(from, until)| [from, until]);
    assert!(holds.is_sorted(), "holds are sorted and disjoint");
    if let Some(breaker) = &config.circuit_breaker {
        assert!(breaker.interval > Time::ZERO, "an interval of a breaker has a length");
        assert!((0.0..=1.0).contains(&breaker.loss), "a loss is within 0 and 1");
        assert!(breaker.intervals > 0, "a breaker trips by an interval at least");
        assert!(breaker.reset_after != Some(Time::ZERO), "a tripped breaker stays so for a time");
    }
    if let Some(pause) = &config.pause {
        assert!(pause.until < pause.at, "a pause ends below where it begins");
        assert!(config.buffer != Buffer::Unlimited, "a queue that fills has a limit");
        assert!(config.aqm == Aqm::DropTail, "a queue that asks for a pause drops nothing early");
    }
    if config.pausable {
        let drop_tail = config.aqm == Aqm::DropTail;
        assert!(drop_tail || config.aqm.decides_on_leaving(), "a paused queue holds its packets");
        assert!(config.device.is_none(), "a paused link has no device queue");
    }
    if config.pausable || config.pause.is_some() {
        assert!(config.rate != RateModel::Unlimited, "a link that pauses has a rate");
    }
    let (Some(Device::Bytes(limit)) | Some(Device::Packets(limit))) = config.device else { return };
    assert!(limit > 0, "a device holds something");
    assert!(config.aqm.decides_on_leaving(), "a device queue is below an AQM that decides late");
}

fn assert_steps<T>(steps: &Steps<T>) {
    let first = steps.0.first().map(|(from, _)| *from);
    assert_eq!(first, Some(Time::ZERO), "the first step is at time zero");
    assert!(steps.0.is_sorted_by(|a, b| a.0 < b.0), "steps ascend");
}

fn assert_loss(loss: &Loss) {
    let probabilities = match *loss {
        Loss::None => vec![],
        Loss::Independent(probability) | Loss::SuperPackets(probability) => vec![probability],
        Loss::Periodic(period) => {
            assert!(period > 0, "a loss period is at least 1");
            vec![]
        }
        Loss::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad } => {
            vec![good_to_bad, bad_to_good, loss_good, loss_bad]
        }
        Loss::Recorded(ref lost) => {
            assert!(!lost.is_empty(), "a loss record has an entry");
            vec![]
        }
        Loss::Steps(ref steps) => {
            assert_steps(steps);
            for (_, loss) in &steps.0 {
                assert!(!matches!(loss, Loss::Steps(_)), "steps of loss have no steps");
                assert_loss(loss);
            }
            vec![]
        }
    };
    for probability in probabilities {
        assert!((0.0..=1.0).contains(&probability), "a probability is within 0 and 1");
    }
}
