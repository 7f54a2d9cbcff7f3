//! Enums of the protocol whose variants are one row each: number, nature, text.

/// Makes an enum of rows `Variant = number, nature, "text";`, with `from_code`, `nature` and `Display`, and the
/// constant `ALL`. A duplicate number does not compile.
macro_rules! numbered {
    ($(#[$attribute:meta])* pub enum $name:ident: $nature:ident {
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

            const fn nature(self) -> $nature {
                match self {
                    $(Self::$variant => $nature::$kind,)+
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
