//! A controller returns a usable decision for any input from a transport.
use crate::pipe::{MSS, init};
use knee_cc::{Connection, Event, Kind, Peer, Recovery, Sample, Selection, Value, build};
use knee_units::Time;
use proptest::prelude::*;

/// Every controller, preset, switch and word except the constant window.
fn selections() -> Vec<Selection> {
    let mut all = Vec::new();
    for entry in knee_cc::controllers().iter().filter(|entry| entry.name != "fixed") {
        all.push(Selection::named(entry.name));
        all.extend(entry.presets.iter().map(|preset| Selection::named(preset.name)));
        for switch in entry.parameters.iter().filter(|one| matches!(one.kind, Kind::Switch)) {
            let other = Value::Switch(switch.default != "true");
            all.push(Selection::named(entry.name).with(switch.name, other));
        }
        for parameter in entry.parameters {
            let (Kind::SwitchOrWord(words) | Kind::Word(words)) = parameter.kind else { continue };
            for word in words.iter().filter(|word| **word != parameter.default) {
                let text = |text: &str| Value::Text(text.to_owned());
                let mut selection = Selection::named(entry.name).with(parameter.name, text(word));
                if *word == "careful-resume" {
                    selection = selection.with("saved_window", text("300 packets"));
                }
                all.push(selection);
            }
        }
    }
    all
}

const EVENTS: [Event; 8] = [
    Event::Established,
    Event::SentAfterIdle,
    Event::RecoveryStart,
    Event::CongestionEcho,
    Event::RecoveryEnd,
    Event::Timeout,
    Event::SpuriousRecovery,
    Event::Penalised,
];

#[derive(Clone, Debug)]
enum Step {
    Ack { packets: u64, lost: u64, in_flight: u64, rtt_us: u64, gap_us: u64, limited: bool },
    Tell(usize),
    Show(Vec<(u64, u64, u64)>, usize),
}

fn step() -> impl Strategy<Value = Step> {
    let ack = (0..50u64, 0..20u64, 0..5000u64, 1..2_000_000u64, 0..3_000_000u64, any::<bool>())
        .prop_map(|(packets, lost, in_flight, rtt_us, gap_us, limited)| Step::Ack {
            packets,
            lost,
            in_flight,
            rtt_us,
            gap_us,
            limited,
        });
    let peer = (0..1u64 << 40, 0..2_000_000u64, any::<u64>());
    let show = (prop::collection::vec(peer, 0..12), 0..12usize)
        .prop_map(|(peers, own)| Step::Show(peers, own));
    prop_oneof![8 => ack, 1 => (0..EVENTS.len()).prop_map(Step::Tell), 1 => show]
}

/// Returns the transport's recovery state after one of its own events.
fn recovery_after(event: Event, now: Recovery) -> Recovery {
    match event {
        Event::RecoveryStart => Recovery::Recovery,
        Event::Timeout => Recovery::Loss,
        Event::CongestionEcho => Recovery::WindowReduced,
        Event::RecoveryEnd | Event::SpuriousRecovery => Recovery::Open,
        _ => now,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn decisions_are_always_usable(
        name in prop::sample::select(selections()),
        steps in prop::collection::vec(step(), 1..400),
    ) {
        let mut controller = build(&name, init(5)).unwrap();
        let mut connection = Connection {
            now: Time::from_millis(1),
            mss: MSS as u32,
            mtu: crate::pipe::MTU as u32,
            window_limited: true,
            ..Connection::default()
        };
        let mut was_cut = false;
        for step in steps {
            let decision = match step {
                Step::Show(peers, own) => {
                    let peer = |&(window, rtt_us, loss_interval): &(u64, u64, u64)| Peer {
                        window,
                        srtt: Time::from_micros(rtt_us),
                        loss_interval,
                    };
                    let peers: Vec<Peer> = peers.iter().map(peer).collect();
                    controller.on_peers(&peers, own);
                    controller.decision()
                }
                Step::Tell(event) => {
                    let event = EVENTS[event];
                    let decision = controller.on_event(event, &connection);
                    connection.recovery = recovery_after(event, connection.recovery);
                    was_cut |= event == Event::Penalised;
                    decision
                }
                Step::Ack { packets, lost, in_flight, rtt_us, gap_us, limited } => {
                    connection.now += Time::from_micros(gap_us);
                    connection.delivered += packets * MSS;
                    connection.acknowledged += packets * MSS;
                    connection.lost += lost * MSS;
                    connection.in_flight = in_flight * MSS;
                    connection.sent = connection.acknowledged + connection.in_flight;
                    let rtt = Time::from_micros(rtt_us);
                    connection.srtt = rtt;
                    connection.min_rtt = rtt;
                    let sample = Sample {
                        delivered: (packets * MSS).min(connection.delivered),
                        prior_delivered: connection.delivered - packets * MSS,
                        interval: Time::from_micros(gap_us),
                        send_interval: Time::from_micros(gap_us.min(rtt_us)),
                        rtt: Some(rtt),
                        app_limited: limited,
                        newly_acked: packets * MSS,
                        newly_acked_segments: packets as u32,
                        newly_lost: lost * MSS,
                        newly_marked: lost.min(packets) * MSS,
                        prior_in_flight: (in_flight + packets) * MSS,
                        ..Sample::default()
                    };
                    controller.on_ack(&sample, &connection)
                }
            };
            prop_assert!(decision.window >= MSS, "{name:?}: {decision:?}");
            prop_assert!(decision.send_quantum >= MSS && decision.send_quantum % MSS == 0);
            prop_assert!(decision.send_quantum <= 65_536);
            if let Some(rate) = decision.pacing_rate {
                prop_assert!(rate.as_bits_per_second() > 0, "{name:?}");
            }
            prop_assert_eq!(decision, controller.decision());
            prop_assert!(!controller.state().phase.is_empty());
            // BBR keeps four packets except in and after recovery and penalties.
            was_cut |= connection.recovery != Recovery::Open;
            if name.name.starts_with("bbr") && !was_cut {
                prop_assert!(decision.window >= 4 * MSS, "{decision:?}");
            }
        }
    }
}
