//! Choices that other crates implement. A family's enum holds one as a value: [`Custom`].

use super::{Algorithm, SettingError, SettingText, Settings, change, list, read, write};
use std::fmt::{self, Debug, Display};

/// An algorithm of another crate, with its numbers: `T` is the builder of its family.
pub struct Custom<T: ?Sized>(pub(crate) Box<T>);

impl<T: Algorithm + ?Sized> Display for Custom<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text())
    }
}

impl<T: Algorithm + ?Sized> Debug for Custom<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

/// Equal as text: in a program, a name means one algorithm.
impl<T: Algorithm + ?Sized> PartialEq for Custom<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0.text() == other.0.text()
    }
}

impl<T: Algorithm + ?Sized> Algorithm for Custom<T> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn written(&self, own: &[SettingText]) -> String {
        self.0.written(own)
    }

    fn numbers(&self) -> Vec<SettingText> {
        self.0.numbers()
    }

    fn contradiction(&self) -> Option<(&'static str, &'static str)> {
        self.0.contradiction()
    }

    fn set_number(&mut self, key: &str, value: &str) -> Result<(), SettingError> {
        self.0.set_number(key, value)
    }

    fn set(&mut self, text: &str) -> Result<(), SettingError> {
        self.0.set(text)
    }
}

/// The numbers of one algorithm under its name.
#[derive(Clone, Debug)]
pub(crate) struct NamedSettings<S> {
    pub(crate) name: &'static str,
    pub(crate) settings: S,
}

impl<S: Settings> Algorithm for NamedSettings<S> {
    fn name(&self) -> &str {
        self.name
    }

    fn written(&self, own: &[SettingText]) -> String {
        write(self.name, &self.settings, own)
    }

    fn numbers(&self) -> Vec<SettingText> {
        list(&self.settings)
    }

    fn contradiction(&self) -> Option<(&'static str, &'static str)> {
        self.settings.contradiction()
    }

    fn set_number(&mut self, key: &str, value: &str) -> Result<(), SettingError> {
        change(self.name, &mut self.settings, key, value)
    }

    /// `NAME`, or `NAME:` and numbers.
    fn set(&mut self, text: &str) -> Result<(), SettingError> {
        let (name, numbers) = text.split_once(':').unwrap_or((text, ""));
        if name != self.name {
            let [family, names] = ["algorithm", self.name].map(String::from);
            return Err(SettingError::UnknownName { family, name: name.into(), names });
        }
        self.settings = read(name, numbers, self.settings.clone())?;
        Ok(())
    }
}

/// Makes the seam of a family, by which other crates implement its algorithms: the public trait of a factory, its
/// object-safe form, the type in which a profile holds one, and `CHOICE::custom`. The methods in `required` have no
/// body, those in `provided` a block.
macro_rules! seam {
    (
        $(#[$doc:meta])*
        $factory:ident, $object:ident, $custom:ident, $choice:ident;
        required { $($(#[$about:meta])* fn $call:ident(&self $(, $argument:ident: $type:ty)*) -> $out:ty;)* }
        provided { $($(#[$also:meta])* fn $more:ident(&$this:ident $(, $given:ident: $of:ty)*) -> $result:ty $body:block)* }
    ) => {
        $(#[$doc])*
        pub trait $factory: $crate::settings::Settings + Send + Sync {
            /// The name in profiles: lower-case letters, digits and hyphens.
            const NAME: &'static str;
            $($(#[$about])* fn $call(&self $(, $argument: $type)*) -> $out;)*
            $($(#[$also])* fn $more(&$this $(, $given: $of)*) -> $result $body)*
        }

        #[doc = concat!("An object-safe [`", stringify!($factory), "`]. Every factory is one.")]
        pub trait $object: $crate::settings::Algorithm + Send + Sync {
            $($(#[$about])* fn $call(&self $(, $argument: $type)*) -> $out;)*
            $($(#[$also])* fn $more(&$this $(, $given: $of)*) -> $result;)*

            /// Clones the factory.
            fn to_boxed(&self) -> Box<dyn $object>;
        }

        impl<F: $factory> $object for $crate::settings::NamedSettings<F> {
            $(fn $call(&self $(, $argument: $type)*) -> $out {
                self.settings.$call($($argument),*)
            })*
            $(fn $more(&$this $(, $given: $of)*) -> $result {
                $this.settings.$more($($given),*)
            })*

            fn to_boxed(&self) -> Box<dyn $object> {
                Box::new(self.clone())
            }
        }

        /// An algorithm of another crate, as a profile holds it.
        pub type $custom = $crate::settings::Custom<dyn $object>;

        impl $custom {
            /// Wraps `factory`.
            pub fn new<F: $factory>(factory: F) -> Self {
                Self(Box::new($crate::settings::NamedSettings { name: F::NAME, settings: factory }))
            }
        }

        impl Clone for $custom {
            fn clone(&self) -> Self {
                Self(self.0.to_boxed())
            }
        }

        impl $choice {
            /// Returns an algorithm of another crate.
            pub fn custom<F: $factory>(factory: F) -> Self {
                Self::Custom($custom::new(factory))
            }
        }
    };
}
pub(crate) use seam;
