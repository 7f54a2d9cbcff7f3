//! Fuzz target of the messages between two downpours through ssh.

use transport::profile::AlgorithmRegistry;

use super::answer::{ANSWER, RemoteAnswer, parse_answer};
use super::doctor::fuzzing::check_report;
use super::greeting::Greeting;
use super::request::{Bounds, Request};

/// Reads `data` as a request, as the output of a login with its answer, and as each line of a doctor. Accepted input is
/// the same when it is written and read again.
///
/// # Panics
/// If it differs.
pub fn fuzz_remote(data: &[u8]) {
    check_request(data);
    check_answer(data);
    check_report(data);
}

/// Reads `text` as the JSON of a request, and as a frame of any length.
fn check_request(text: &[u8]) {
    let names = AlgorithmRegistry::default();
    let _ = Request::read(&mut &text[..], &names, Bounds::OF_USER);
    let length = u32::try_from(text.len()).expect("an input is short");
    let frame = [&length.to_be_bytes(), text].concat();
    let Ok(request) = Request::read(&mut &*frame, &names, Bounds::OF_USER) else { return };
    let written = request.to_frame().expect("what was read");
    let again = Request::read(&mut &*written, &names, Bounds::OF_USER).expect("what was written");
    assert_eq!(again.to_frame().expect("what was read"), written);
    let _ = request.bind();
}

/// Reads `output` as the output of a login, and as an answer at its end.
fn check_answer(output: &[u8]) {
    for output in [output.to_vec(), [b"a greeting\n", ANSWER.as_bytes(), output].concat()] {
        let Ok(Some((_, line))) = Greeting::default().read_to(&mut &*output, &[ANSWER]) else { continue };
        let Ok(answer) = parse_answer(&line) else { continue };
        let text = answer.to_text().expect("as many addresses as were read");
        let again = parse_answer(&text).expect("what was written");
        let parts = |answer: RemoteAnswer| (answer.ticket, answer.links_followed, answer.enforced);
        assert_eq!(parts(again), parts(answer));
    }
}
