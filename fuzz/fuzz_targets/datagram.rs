//! A datagram of a bundle, or a JOIN and its answer: any input is refused, or means the same when
//! written again.

#![no_main]

use knee_bundle::{Answer, Frame, Join, Malformed, Reader, VERSION};
use libfuzzer_sys::fuzz_target;

fn read_all(bytes: &[u8]) -> Result<Vec<Frame<'_>>, Malformed> {
    let mut reader = Reader::new(bytes);
    std::iter::from_fn(|| Frame::read(&mut reader).transpose()).collect()
}

fuzz_target!(|data: &[u8]| {
    match read_all(data) {
        Ok(frames) => {
            let mut again = Vec::new();
            frames.iter().for_each(|frame| frame.write(&mut again));
            assert_eq!(read_all(&again), Ok(frames));
        }
        Err(error) => assert!(!error.to_string().contains('\n')),
    }
    if let Ok(Some(join)) = Join::read(data)
        && join.version == VERSION
    {
        let mut again = Vec::new();
        join.write(&mut again);
        assert_eq!(Join::read(&again), Ok(Some(join)));
    }
    if let Ok(Some(answer)) = Answer::read(data) {
        let mut again = Vec::new();
        answer.write(&mut again);
        assert_eq!(Answer::read(&again), Ok(Some(answer)));
    }
});
