//! Enums of the protocol whose variants are one row each: number, class, text.

/// Makes an enum of rows `Variant = number, class, "text";`, with `from_code`, `class` and `Display`, and the
/// constant `ALL`. A duplicate number does not compile.
macro_rules! numbered {
    ($(#[$attribute:meta])* pub enum $name:ident: $class:ident {
        $($(#[$doc:meta])* $variant:ident = $number:literal, $kind:ident, $text:literal;)+
    }) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[repr(u8)]
        pub enum $name {
            $($(#[$doc])* $variant = $number,)+
        }

        impl $name {
            /// All variants, in the order of their numbers.
            const ALL: &[Self] = &[$(Self::$variant),+];

            /// Returns the variant with this number on the wire.
            #[must_use]
            pub fn from_code(code: u8) -> Option<Self> {
                Self::ALL.iter().copied().find(|known| *known as u8 == code)
            }

            const fn class(self) -> $class {
                match self {
                    $(Self::$variant => $class::$kind,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self {
                    $(Self::$variant => $text,)+
                })
            }
        }
    };
}

pub(super) use numbered;
