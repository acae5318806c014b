//! `knee observe --upload`: completed files in an object store.

use knee_live::Stored;
use serde_json::{Value, json};

#[cfg(feature = "upload")]
pub use storing::{Upload, begin, check};
#[cfg(not(feature = "upload"))]
pub use without::{Upload, begin, check};

/// What became of the files, for the summary.
pub fn words(stored: &Stored) -> String {
    let Stored { files, waiting, removed_before, .. } = stored;
    let mut words = format!("stored   {files} files\n");
    if *waiting > 0 {
        let why = stored.trouble.as_deref().unwrap_or("the time was too short");
        words += &format!(
            "waiting  {waiting} files are not stored yet: {why}\n         The next knee observe \
             --upload in this folder stores them.\n"
        );
    }
    if *removed_before > 0 {
        words += &format!(
            "lost     {removed_before} files were removed before they were known to be stored, by \
             --limit\n"
        );
    }
    words
}

/// The same for other programs.
pub fn json(stored: &Stored) -> Value {
    json!({
        "files": stored.files,
        "bytes": stored.bytes,
        "waiting": stored.waiting,
        "removed_before": stored.removed_before,
        "failures": stored.failures,
        "error": stored.trouble,
    })
}

#[cfg(not(feature = "upload"))]
mod without {
    use crate::failure::Failure;
    use knee_live::{Observer, Stored};
    use std::path::Path;

    /// Uninhabited, since this build stores nothing.
    pub enum Upload {}

    /// Fails with the advice to use a build that can store files.
    pub fn check(url: Option<&str>) -> Result<(), Failure> {
        let advice = format!(
            "install one that can, {}, or remove --upload and copy the files",
            crate::build::with("upload")
        );
        url.map_or(Ok(()), |_| {
            Err(Failure::Usage("this build of Knee cannot upload".into(), advice))
        })
    }

    /// Nothing, after [`check`].
    pub fn begin(
        _url: Option<&str>,
        _folder: &Path,
        _observer: &mut Observer,
    ) -> Result<Option<Upload>, Failure> {
        Ok(None)
    }

    impl Upload {
        /// Never called, as the next.
        pub fn tell(&mut self) {
            match *self {}
        }

        /// Never called.
        pub fn finish(self) -> Stored {
            match self {}
        }
    }
}

#[cfg(feature = "upload")]
mod storing {
    use crate::failure::Failure;
    use crate::screen;
    use knee_live::{Observer, Queue, Stored, UploadError, upload_host, upload_place};
    use std::path::Path;
    use std::time::Duration;

    /// Time for the last files after the end.
    const FINISH_TIMEOUT: Duration = Duration::from_secs(15);

    /// Files that are being stored.
    pub struct Upload {
        storing: knee_live::Upload,
        /// Whether the last attempt failed, as far as it was reported.
        is_failing: bool,
    }

    /// Checks the address, before anything is done.
    pub fn check(url: Option<&str>) -> Result<(), Failure> {
        url.map_or(Ok(()), |url| upload_place(url).map_err(wrong))
    }

    /// Stores the files of a folder, and those that the observer completes.
    pub fn begin(
        url: Option<&str>,
        folder: &Path,
        observer: &mut Observer,
    ) -> Result<Option<Upload>, Failure> {
        let Some(url) = url else { return Ok(None) };
        let queue = Queue::of(folder)?;
        observer.store(queue.clone());
        let host = upload_host().map_err(wrong)?;
        let storing = knee_live::Upload::begin(url, &host, queue).map_err(wrong)?;
        screen::say(&format!("Completed files are also stored in {url}, folder host={host}."));
        Ok(Some(Upload { storing, is_failing: false }))
    }

    impl Upload {
        /// Reports the first of consecutive failures, and their end.
        pub fn tell(&mut self) {
            let trouble = self.storing.progress().trouble;
            match &trouble {
                Some(trouble) if !self.is_failing => screen::say(&format!(
                    "Not stored: {trouble}. It is tried again; until then the files stay in the \
                     folder, within --limit. Causes: docs/observe.md."
                )),
                None if self.is_failing => screen::say("Files are stored again."),
                _ => {}
            }
            self.is_failing = trouble.is_some();
        }

        /// Stores what is left, as far as it is possible soon.
        pub fn finish(self) -> Stored {
            let waiting = self.storing.progress().waiting;
            if waiting > 0 {
                screen::say(&format!(
                    "Storing the last files ({waiting}), for at most {} s.",
                    FINISH_TIMEOUT.as_secs()
                ));
            }
            self.storing.finish(FINISH_TIMEOUT)
        }
    }

    fn wrong(error: UploadError) -> Failure {
        let what = error.to_string();
        match error {
            UploadError::Address { .. } => Failure::Usage(
                what,
                "write s3://BUCKET/PATH, gs://BUCKET/PATH, az://CONTAINER/PATH or file:///PATH"
                    .to_string(),
            ),
            UploadError::Settings { .. } => Failure::Usage(
                what,
                "check the environment, such as AWS_REGION, and install ca-certificates if the host \
                 has none; docs/observe.md"
                    .to_string(),
            ),
            UploadError::System(_) => Failure::Internal(what),
        }
    }
}
