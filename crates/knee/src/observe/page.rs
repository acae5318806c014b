//! Page of `knee observe`.

#[cfg(feature = "live")]
pub use shown::{listen, page_failure};
#[cfg(not(feature = "live"))]
pub use unshown::listen;

/// What stands for a page in a build that has none.
#[cfg(not(feature = "live"))]
mod unshown {
    use crate::failure::Failure;
    use knee_live::{Look, Observer, OpenObserver};
    use std::net::SocketAddr;
    use std::path::Path;
    use std::sync::Arc;

    /// Place of a page; uninhabited, since this build has none.
    pub enum Place {}

    /// Fails with the advice to use a build that supports the page.
    pub fn listen(_address: SocketAddr) -> Result<Place, Failure> {
        Err(Failure::Usage(
            "this build of Knee cannot serve a page".to_string(),
            format!(
                "install one that can, {}, or remove --page; knee report DIR writes the same page \
                 afterwards, of connections that ended",
                crate::build::with("live")
            ),
        ))
    }

    /// Never called, because there is no such place.
    impl Place {
        pub fn recent(self, _directory: &Path) -> Place {
            match self {}
        }

        pub fn show(self, _observer: &mut Observer) -> Result<(), Failure> {
            match self {}
        }

        pub fn show_open(
            self,
            _observer: &mut OpenObserver,
            _grouped: bool,
            _whole: bool,
        ) -> Result<Place, Failure> {
            match self {}
        }

        pub fn add(&self, _look: &Arc<Look>) {
            match *self {}
        }
    }
}

#[cfg(feature = "live")]
mod shown {
    use crate::failure::Failure;
    use crate::screen;
    use knee_live::page::{OpenPage, Page, PageError};
    use knee_live::{Live, Observer, OpenObserver};
    use std::net::{SocketAddr, TcpListener};
    use std::path::Path;

    /// The listener of a page.
    pub struct Place(TcpListener);

    /// The listener of a page of connections as they end, and its initial contents.
    pub struct Recent(TcpListener, Live);

    /// Binds the page's address.
    pub fn listen(address: SocketAddr) -> Result<Place, Failure> {
        let listener = knee_live::page::listen(address).map_err(page_failure)?;
        Ok(Place(listener))
    }

    /// Why a page cannot be served, and what to write instead.
    pub fn page_failure(error: PageError) -> Failure {
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
    }

    fn unserved(error: std::io::Error) -> Failure {
        Failure::Internal(format!("cannot serve a page: {error}"))
    }

    impl Place {
        /// Reads the files of the last hour, before the observer begins.
        pub fn recent(self, directory: &Path) -> Recent {
            let (live, wrong) = Live::recent(directory);
            for error in wrong {
                screen::say(&format!("Not shown on the page: {error}"));
            }
            Recent(self.0, live)
        }

        /// Serves open connections from now on, until the page is dropped; with their groups, and
        /// the whole addresses of their clients.
        pub fn show_open(
            self,
            observer: &mut OpenObserver,
            grouped: bool,
            whole: bool,
        ) -> Result<OpenPage, Failure> {
            let page = OpenPage::open(self.0, grouped, whole).map_err(unserved)?;
            observer.leave_out(page.address());
            screen::say(&format!("Open connections: http://{}", page.address()));
            Ok(page)
        }
    }

    impl Recent {
        /// Serves observations from now on, until the page is dropped.
        pub fn show(self, observer: &mut Observer) -> Result<Page, Failure> {
            let Recent(listener, live) = self;
            let page = Page::of_ended(listener, live.clone()).map_err(unserved)?;
            observer.show_on(live, page.address());
            screen::say(&format!("The last hour: http://{}", page.address()));
            Ok(page)
        }
    }
}
