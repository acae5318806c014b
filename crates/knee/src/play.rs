//! `knee play`.

#[cfg(feature = "live")]
pub use page::play;
#[cfg(not(feature = "live"))]
pub use without::play;

#[cfg(not(feature = "live"))]
mod without {
    use crate::arguments::Play;
    use crate::failure::{Ending, Failure};

    /// Fails with the advice to use a build that has the page.
    pub fn play(arguments: &Play) -> Result<Ending, Failure> {
        let run = arguments.file.as_ref().map(|file| {
            let file = knee_lab::command::quoted(&file.to_string_lossy());
            format!("; knee run {file} writes a page of one run")
        });
        Err(Failure::Usage(
            format!("this build of Knee cannot serve a page at {}", arguments.page),
            format!(
                "install one that can: {}{}",
                crate::build::with("live"),
                run.unwrap_or_default()
            ),
        ))
    }
}

#[cfg(feature = "live")]
mod page {
    use crate::arguments::Play as Arguments;
    use crate::failure::{Ending, Failure};
    use crate::observe::page_failure;
    use crate::{interrupt, screen};
    use knee_lab::play::{Play, listen, serve};
    use knee_lab::{Handle, ScenarioText};

    /// Serves the page until Ctrl-C.
    pub fn play(arguments: &Arguments) -> Result<Ending, Failure> {
        let text = arguments.file.as_deref().map(ScenarioText::read).transpose();
        let play = Play::new(text.map_err(|errors| Failure::Files(vec![errors]))?)?;
        let listener = listen(arguments.page).map_err(page_failure)?;
        let unserved =
            |error: std::io::Error| Failure::Internal(format!("cannot serve a page: {error}"));
        let address = listener.local_addr().map_err(unserved)?;
        let handle = Handle::default();
        interrupt::stops_with(handle.clone(), "Stopping.")?;
        screen::say(&format!("Open http://{address} in a browser; Ctrl-C stops it."));
        serve(listener, play, &handle).map_err(unserved)?;
        Ok(Ending::Done)
    }
}
