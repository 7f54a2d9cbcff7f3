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
