//! Page of `knee observe`.

use crate::failure::Failure;
use knee_live::Observer;
use std::net::SocketAddr;
use std::path::Path;

#[cfg(feature = "live")]
pub use shown::listen;

/// Place of a page; uninhabited, since this build has none.
#[cfg(not(feature = "live"))]
pub enum Place {}

/// Fails with the advice to use a build that supports the page.
#[cfg(not(feature = "live"))]
pub fn listen(_address: SocketAddr, _directory: &Path) -> Result<Place, Failure> {
    Err(Failure::Usage(
        "this build of Knee cannot serve a page".to_string(),
        format!(
            "install one that can, {}, or remove --page; knee report DIR writes the same page \
             afterwards",
            crate::build::with("live")
        ),
    ))
}

#[cfg(not(feature = "live"))]
impl Place {
    /// Never called, because there is no such place.
    pub fn show(self, _observer: &mut Observer) -> Result<(), Failure> {
        match self {}
    }
}

#[cfg(feature = "live")]
mod shown {
    use super::{Failure, Observer, Path, SocketAddr};
    use crate::screen;
    use knee_live::Live;
    use knee_live::page::{Page, PageError};
    use std::net::TcpListener;

    /// The listener of a page, and its initial contents.
    pub struct Place(TcpListener, Live);

    /// Binds the page's address and reads the files of the last hour.
    pub fn listen(address: SocketAddr, directory: &Path) -> Result<Place, Failure> {
        let listener = knee_live::page::listen(address).map_err(|error| {
            let what = error.to_string();
            match error {
                PageError::NotLoopback(address) => {
                    let port = address.port();
                    let advice = format!(
                        "write --page 127.0.0.1:{port}; from elsewhere, forward it: \
                         ssh -L {port}:127.0.0.1:{port} HOST"
                    );
                    Failure::Usage(what, advice)
                }
                PageError::Listen { .. } => {
                    Failure::Host(what, "name a free port, as in --page 127.0.0.1:0".to_string())
                }
            }
        })?;
        let (live, wrong) = Live::recent(directory);
        for error in wrong {
            screen::say(&format!("Not shown on the page: {error}"));
        }
        Ok(Place(listener, live))
    }

    impl Place {
        /// Serves observations from now on, until the page is dropped.
        pub fn show(self, observer: &mut Observer) -> Result<Page, Failure> {
            let Place(listener, live) = self;
            let begin = |error| Failure::Internal(format!("cannot serve a page: {error}"));
            let page = Page::open(listener, live.clone()).map_err(begin)?;
            observer.show_on(live, page.address());
            screen::say(&format!("The last hour: http://{}", page.address()));
            Ok(page)
        }
    }
}
