//! The order in which the schedules that repair ahead of losses send a flow's symbols.

use super::flow;
use crate::ttp::ChunksConfig;
use erasure::BlockCode;
use erasure::tornado::CheckShare;
use transport::flow::PathEstimate;
use transport::flow::schedule::TestFlow;
use transport::settings::read;

mod proactive {
    use super::*;

    /// A flow of lt-tcp with these blocks of a code that decodes from any k.
    fn line(loss: f64, blocks: &[u32]) -> TestFlow {
        flow("proactive:failure=5%", "reed-solomon", blocks).losing(loss)
    }

    #[test]
    fn repair_follows_the_source_of_its_block() {
        // Of 5 symbols, 2 or more are lost with probability 0.081 at 10 %; of 6, more than 2 with 0.016; of 1 and 1,
        // both with 0.01.
        assert_eq!(line(0.1, &[4, 1]).log(99), "0?2 0:0 0:1 0:2 0:3 0:+4 0:+5 1?1 1:0 1:+1");
        assert_eq!(line(0.0, &[2, 2]).log(99), "0:0 0:1 1:0 1:1", "nothing is coded where nothing is lost");
    }

    #[test]
    fn the_amount_is_fixed_when_coding_begins() {
        let mut line = line(0.1, &[4, 4]);
        assert_eq!(line.log(2), "0?2 0:0");
        line.path.loss = 0.0;
        assert_eq!(line.log(99), "0:1 0:2 0:3 0:+4 0:+5 1:0 1:1 1:2 1:3");
    }

    #[test]
    fn source_continues_while_repair_is_encoded() {
        let mut line = line(0.1, &[2, 2]);
        line.holds_replies = true;
        assert_eq!(line.log(99), "0?1 0:0 0:1 1?1 1:0 1:1");
        line.reply();
        assert_eq!(line.log(99), "0:+2 1:+2");
    }

    #[test]
    fn reactive_repair_follows_more_loss_than_repair() {
        let mut line = line(0.1, &[4]);
        assert_eq!(line.log(99), "0?2 0:0 0:1 0:2 0:3 0:+4 0:+5");
        line.hear(&[(0, 0), (0, 5)], &[(0, 1)]);
        assert_eq!(line.log(99), "", "two lost of two more");
        line.hear(&[(0, 2)], &[]);
        assert_eq!(line.log(99), "0?1 0:+6", "the third");
        line.hear(&[(0, 6), (0, 4)], &[]);
        assert_eq!(line.log(99), "0?2 0:+7 0:+8", "reactive repair is lost too");
        line.acknowledge(0);
        assert_eq!(line.log(99), "");
    }

    #[test]
    fn reactive_repair_waits_for_the_first_n() {
        let mut line = line(0.1, &[4, 4]);
        assert_eq!(line.log(4), "0?2 0:0 0:1 0:2");
        line.hear(&[(0, 0), (0, 1), (0, 2)], &[]);
        assert_eq!(line.log(99), "0:3 0:+4 0:+5 0?1 0:+6 1?2 1:0 1:1 1:2 1:3 1:+4 1:+5", "then before the next block");
    }

    /// lt-tcp §3.4, as it was: known losses do not matter, only the time without an acknowledgement for a block.
    #[test]
    fn an_idle_counter_waits_for_acknowledgements_of_later_blocks() {
        let line = || flow("proactive:failure=5%,idle=2", "reed-solomon", &[4, 4]).losing(0.1);
        let all = "0?2 0:0 0:1 0:2 0:3 0:+4 0:+5 1?2 1:0 1:1 1:2 1:3 1:+4 1:+5";
        let mut late = line();
        assert_eq!(late.log(99), all);
        late.hear(&[(0, 0), (0, 1), (0, 2)], &[(0, 3)]);
        late.hear(&[], &[(0, 4), (0, 5)]);
        assert_eq!(late.log(99), "", "one is missing, and known to be");
        late.hear(&[], &[(1, 0)]);
        assert_eq!(late.log(99), "");
        late.hear(&[], &[(1, 1)]);
        assert_eq!(late.log(99), "0?1 0:+6");
        late.hear(&[(0, 6)], &[(1, 2)]);
        assert_eq!(late.log(99), "", "it counts again from 0");
        late.hear(&[], &[(1, 3)]);
        assert_eq!(late.log(99), "0?1 0:+7");
        // No acknowledgements are left to count.
        late.time_out(&[(0, 7)]);
        assert_eq!(late.log(99), "0?1 0:+8");

        // Reordered near the border of blocks: the document's reason to give it up.
        let mut reordered = line();
        assert_eq!(reordered.log(99), all);
        reordered.hear(&[], &[(1, 0)]);
        reordered.hear(&[], &[(1, 1)]);
        assert_eq!(reordered.log(99), "0?4 0:+6 0:+7 0:+8 0:+9", "a whole block, of which nothing was lost");
    }

    #[test]
    fn acknowledgements_after_a_timeout_count_for_the_block() {
        let mut line = line(0.0, &[2]);
        assert_eq!(line.log(99), "0:0 0:1");
        line.hear(&[(0, 0), (0, 1)], &[]);
        assert_eq!(line.log(2), "0?2 0:+2");
        line.hear_late(0, 1);
        assert_eq!(line.log(99), "", "the one late and the one in flight will do");
    }

    #[test]
    fn a_code_without_further_symbols_has_lost_source_sent_again() {
        let mut line = line(0.0, &[128]);
        assert_eq!(line.log(999).split(' ').count(), 128);
        let all = |from: u32, to: u32| (from..to).map(|esi| (0, esi)).collect::<Vec<_>>();
        line.hear(&all(0, 128), &[]);
        assert!(line.log(999).ends_with("0:+254 0:+255"));
        line.hear(&all(130, 256), &[(0, 128), (0, 129)]);
        let sent = line.log(999);
        assert!(sent.starts_with("0:0 again 0:1 again") && sent.ends_with("0:125 again"), "{sent}");
    }
}

mod chunks {
    use super::*;

    fn line(schedule: &str, loss: f64, chunks: &[u32]) -> TestFlow {
        flow(schedule, "tornado:64", chunks).losing(loss)
    }

    #[test]
    fn the_next_chunk_is_encoded_while_one_is_sent() {
        // Of 6 symbols, more than 2 are lost with probability 0.016 at 10 %; of 7, more than 3 with 0.0027.
        let mut line = line("chunks:padding=99%", 0.1, &[4, 4, 4]);
        line.holds_replies = true;
        assert_eq!(line.log(3), "0?3 1?3 0:0");
        line.reply();
        assert_eq!(line.log(9), "0:1 0:2 0:3 0:+4 0:+5 0:+6 2?3 1:0 1:1");
    }

    /// Nothing of a chunk goes out before it is encoded, and the next one is encoded while it is sent, not before.
    #[test]
    fn encoded_first_a_chunk_waits_for_its_padding() {
        let mut line = line("chunks:padding=99%,encode=first", 0.1, &[4, 4, 4]);
        line.holds_replies = true;
        assert_eq!(line.log(9), "0?3", "the encoding phase");
        line.reply();
        assert_eq!(line.log(9), "0:0 1?3 0:1 0:2 0:3 0:+4 0:+5 0:+6", "the transmission phase, and the next encoding");
        line.reply();
        assert_eq!(line.log(9), "1:0 2?3 1:1 1:2 1:3 1:+4 1:+5 1:+6");
        line.hear(&[(0, 0), (0, 1), (0, 2), (0, 3)], &[]);
        assert_eq!(line.log(9), "0:0 again", "a chunk that fails is mended while the next is encoded");
        line.reply();
        assert_eq!(line.log(9), "2:0 2:1 2:2 2:3 2:+4 2:+5 2:+6");
    }

    #[test]
    fn an_encoded_first_chunk_has_a_check_symbol_without_loss() {
        assert_eq!(line("chunks", 0.0, &[2, 2]).log(99), "0:0 0:1 1:0 1:1");
        let sent = line("chunks:encode=first", 0.0, &[2, 2]).log(99);
        assert_eq!(sent, "0?1 0:0 1?1 0:1 0:+2 1:0 1:1 1:+2");
    }

    #[test]
    fn encoded_first_a_code_without_repair_sends_its_source() {
        let mut line = flow("chunks:encode=first", "uncoded", &[2; 2]).losing(0.1);
        assert_eq!(line.log(99), "0:0 0:1 1:0 1:1");
    }

    #[test]
    fn lost_source_of_a_chunk_that_fails_goes_again() {
        let mut line = line("chunks:padding=99%", 0.1, &[4, 4]);
        assert_eq!(line.log(9), "0?3 1?3 0:0 0:1 0:2 0:3 0:+4 0:+5 0:+6");
        line.hear(&[(0, 0), (0, 1), (0, 5)], &[]);
        assert_eq!(line.log(1), "1:0", "the padding bears three");
        line.hear(&[(0, 4)], &[(0, 2), (0, 3)]);
        assert_eq!(line.log(2), "0:0 again 1:1", "the fourth, before the next chunk continues");
        line.hear(&[(0, 6)], &[(0, 0)]);
        assert_eq!(line.log(2), "0:1 again 1:2");
        line.acknowledge(0);
        assert_eq!(line.log(99), "1:3 1:+4 1:+5 1:+6");
    }

    #[test]
    fn a_failed_chunk_without_retransmission_is_abandoned() {
        let mut line = line("chunks:padding=document,mend=off", 0.5, &[4]);
        // n (1 - p) = k.
        assert_eq!(line.log(99), "0?4 0:0 0:1 0:2 0:3 0:+4 0:+5 0:+6 0:+7");
        line.hear(&[(0, 0), (0, 1), (0, 2), (0, 3)], &[]);
        assert_eq!(line.log(99), "", "the others may arrive");
        line.hear(&[(0, 4)], &[]);
        assert_eq!(line.log(99), "gives up");
    }

    /// The completion probability is that of the binomial; the average padding completes half of all chunks.
    #[test]
    fn padding_follows_the_estimate() {
        let path = |loss| PathEstimate { rtt: None, loss, burst: 5.0, window: 1 };
        let padding = |text: &str, k, loss| {
            let config = read("chunks", text, ChunksConfig::default()).expect("numbers");
            config.padding(k, BlockCode::Tornado(CheckShare::HALF), &path(loss))
        };
        assert_eq!([0.0, 0.01, 0.1].map(|loss| padding("", 89, loss)), [0, 5, 22]);
        assert_eq!([0.0, 0.01, 0.1].map(|loss| padding("padding=document", 89, loss)), [0, 1, 10]);
        // Above 120 symbols a Tornado code needs more than k, but not if all of the source arrives.
        assert_eq!(padding("", 1_000, 0.0), 0);
        assert!((250..320).contains(&padding("", 1_000, 0.01)), "{}", padding("", 1_000, 0.01));
    }
}
