//! The answers that wait for the thread of the terminal. News of the same kind replace each other,
//! so their number is bounded while another program has the terminal.

use std::io::{self, Read, Write};
use std::mem::discriminant;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, PoisonError};

use fathom_explore::input::Answer;

/// Answers, with a pipe that is readable while there are any.
#[derive(Debug)]
pub(crate) struct AnswerInbox {
    answers: Mutex<Vec<Answer>>,
    wake: UnixStream,
}

impl AnswerInbox {
    /// Creates an inbox that writes a byte to `wake` for each answer. `wake` must not block.
    pub(crate) fn new(wake: UnixStream) -> Self {
        Self { answers: Mutex::default(), wake }
    }

    /// Adds an answer.
    pub(crate) fn push(&self, answer: Answer) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(answer, Answer::Progress(_) | Answer::Removing(_)) {
            answers.retain(|other| discriminant(other) != discriminant(&answer));
        }
        answers.push(answer);
        // A full pipe wakes as well.
        let _ = (&self.wake).write(&[0]);
    }

    /// Takes all answers.
    pub(crate) fn take(&self) -> Vec<Answer> {
        std::mem::take(&mut *self.answers.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Returns the two ends of a pipe, neither of which blocks: the reader, and the writer.
pub(crate) fn wake_pipe() -> io::Result<(UnixStream, UnixStream)> {
    let (reader, writer) = UnixStream::pair()?;
    reader.set_nonblocking(true)?;
    writer.set_nonblocking(true)?;
    Ok((reader, writer))
}

/// Empties a pipe.
pub(crate) fn drain(mut pipe: &UnixStream) {
    let mut buffer = [0; 256];
    while pipe.read(&mut buffer).is_ok_and(|count| count == buffer.len()) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_explore::source::SourceProgress;

    #[test]
    fn news_replace_older_news_and_nothing_else() {
        let (reader, writer) = wake_pipe().unwrap();
        let inbox = AnswerInbox::new(writer);
        for version in 0..10_000 {
            inbox.push(Answer::Progress(SourceProgress { version, ..SourceProgress::default() }));
        }
        for text in [&b"one"[..], b"two"] {
            inbox.push(Answer::Message(text.to_vec()));
        }
        drain(&reader);
        let answers = inbox.take();
        let [Answer::Progress(progress), Answer::Message(one), Answer::Message(two)] = &answers[..] else {
            panic!("{answers:?}");
        };
        assert_eq!((progress.version, &one[..], &two[..]), (9999, &b"one"[..], &b"two"[..]));
        assert!(inbox.take().is_empty());
        let mut byte = [0];
        assert_eq!((&reader).read(&mut byte).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }
}
