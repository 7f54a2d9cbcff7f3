//! The output of `--version`.

use std::sync::LazyLock;

/// Returns version, commit, target, profile, and the processor's features for ciphers.
pub(crate) fn long() -> &'static str {
    static LONG: LazyLock<String> = LazyLock::new(|| {
        format!(
            "{}\ncommit:   {}\ntarget:   {}\nprofile:  {}\nciphers:  {}",
            env!("CARGO_PKG_VERSION"),
            option_env!("BUILD_COMMIT").unwrap_or("unknown"),
            env!("BUILD_TARGET"),
            env!("BUILD_PROFILE"),
            features(),
        )
    });
    &LONG
}

/// Returns the processor's instructions that make AES-GCM and ChaCha20 fast.
fn features() -> String {
    let features: Vec<&str> =
        present().into_iter().filter_map(|(name, is_present)| is_present.then_some(name)).collect();
    if features.is_empty() { "no special instructions".to_owned() } else { features.join(" ") }
}

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
fn present() -> [(&'static str, bool); 6] {
    use std::arch::is_x86_feature_detected as has;
    [
        ("aes", has!("aes")),
        ("pclmulqdq", has!("pclmulqdq")),
        ("vaes", has!("vaes")),
        ("vpclmulqdq", has!("vpclmulqdq")),
        ("avx2", has!("avx2")),
        ("avx512f", has!("avx512f")),
    ]
}

#[cfg(target_arch = "aarch64")]
fn present() -> [(&'static str, bool); 3] {
    use std::arch::is_aarch64_feature_detected as has;
    [("aes", has!("aes")), ("pmull", has!("pmull")), ("neon", has!("neon"))]
}

#[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
fn present() -> [(&'static str, bool); 0] {
    []
}
