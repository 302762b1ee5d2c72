//! A folder that model-signing signed, by two keys, and what is wrong with every change of it; then statements that a hostile signer signs.

use std::path::PathBuf;

use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::{Value, json};

use super::*;
use crate::digest::sha256;
use crate::hub::Status;

const P256: &str = include_str!("../../../tests/goldens/model-signing/p256.pem");
const P384: &str = include_str!("../../../tests/goldens/model-signing/p384.pem");
const BY_P384: &str = include_str!("../../../tests/goldens/model-signing/p384.sig");
const SIGNED: &str = include_str!("../../../tests/goldens/model-signing/model/model.sig");
const CONFIG: &str = include_str!("../../../tests/goldens/model-signing/model/config.json");
const PART: &[u8] = include_bytes!("../../../tests/goldens/model-signing/model/sub/part.bin");

/// The model's folder, its signature inside, and a key beside it.
struct Folder {
    scratch: tempfile::TempDir,
    model: PathBuf,
}

impl Folder {
    fn new(signature: &str, key: &str) -> Folder {
        let scratch = tempfile::tempdir().unwrap();
        let model = scratch.path().join("model");
        fs_err::create_dir_all(model.join("sub")).unwrap();
        let folder = Folder { scratch, model };
        folder.write("config.json", CONFIG);
        fs_err::write(folder.model.join("sub/part.bin"), PART).unwrap();
        folder.write("model.sig", signature);
        folder.write("../key.pem", key);
        folder
    }

    fn write(&self, name: &str, text: &str) {
        fs_err::write(self.model.join(name), text).unwrap();
    }

    fn verify(&self) -> Result<SignedFolder, HubError> {
        verify(&self.model, &self.model.join("model.sig"), &self.scratch.path().join("key.pem"))
    }

    /// The files that are not what was signed.
    fn wrong(&self) -> Vec<(String, Status)> {
        let checks = self.verify().unwrap().checks.into_iter();
        let wrong = checks.filter(|check| !matches!(check.status, Status::Ok(_)));
        wrong.map(|check| (check.name, check.status)).collect()
    }

    fn refusal(&self) -> String {
        self.verify().unwrap_err().to_string()
    }
}

#[test]
fn what_model_signing_signed_verifies_and_what_it_ignored_may_be_there() {
    for (signature, key) in [(SIGNED, P256), (BY_P384, P384)] {
        let folder = Folder::new(signature, key);
        folder.write(".gitattributes", "anything\n");
        assert_eq!(folder.wrong(), []);
        let signed = folder.verify().unwrap();
        assert_eq!((signed.checks.len(), signed.key), (2, sha256(key)));
        assert!(signed.ignored.contains(&".gitattributes".to_owned()));
    }
}

#[test]
fn a_changed_a_missing_and_a_further_file_are_told_apart() {
    let folder = Folder::new(SIGNED, P256);
    folder.write("config.json", "{}");
    let expected = sha256(CONFIG);
    let changed = Status::Mismatch { authority: crate::hub::Authority::Signature, expected };
    assert_eq!(folder.wrong(), [("config.json".to_owned(), changed)]);

    let folder = Folder::new(SIGNED, P256);
    fs_err::remove_file(folder.model.join("sub/part.bin")).unwrap();
    assert_eq!(folder.wrong(), [("sub/part.bin".to_owned(), Status::Missing)]);

    let folder = Folder::new(SIGNED, P256);
    folder.write("sub/more.py", "");
    assert_eq!(folder.wrong(), [("sub/more.py".to_owned(), Status::Unsigned)]);

    // A link is the file that it leads to, as in the hub's cache; one that leads nowhere or to a folder is no file.
    let folder = Folder::new(SIGNED, P256);
    fs_err::rename(folder.model.join("config.json"), folder.scratch.path().join("blob")).unwrap();
    std::os::unix::fs::symlink("../blob", folder.model.join("config.json")).unwrap();
    assert_eq!(folder.wrong(), []);
    std::os::unix::fs::symlink("nowhere", folder.model.join("link")).unwrap();
    assert!(folder.refusal().contains("link"), "{}", folder.refusal());
    fs_err::remove_file(folder.model.join("link")).unwrap();
    std::os::unix::fs::symlink("sub", folder.model.join("link")).unwrap();
    assert!(folder.refusal().contains("link"), "{}", folder.refusal());
}

#[test]
fn another_key_and_a_changed_signature_are_refused() {
    let told = Folder::new(SIGNED, P384).refusal();
    assert!(told.contains("was made with another key"), "{told}");
    let without_hint = |text: &str| text.replace(&format!("\"{}\"", sha256(P256)), "null");
    let told = Folder::new(&without_hint(SIGNED), P384).refusal();
    assert!(told.contains("is not a signature by"), "{told}");
    assert_eq!(Folder::new(&without_hint(SIGNED), P256).wrong(), []);

    let mut bundle: Value = serde_json::from_str(SIGNED).unwrap();
    let sig = bundle["dsseEnvelope"]["signatures"][0]["sig"].as_str().unwrap();
    let mut bytes = STANDARD.decode(sig).unwrap();
    bytes[20] ^= 1;
    bundle["dsseEnvelope"]["signatures"][0]["sig"] = STANDARD.encode(bytes).into();
    let told = Folder::new(&bundle.to_string(), P256).refusal();
    assert!(told.contains("is not a signature by"), "{told}");
    let mut bundle: Value = serde_json::from_str(SIGNED).unwrap();
    let payload = STANDARD.decode(bundle["dsseEnvelope"]["payload"].as_str().unwrap()).unwrap();
    let payload = String::from_utf8(payload).unwrap().replace(".gitignore", "config.json");
    bundle["dsseEnvelope"]["payload"] = STANDARD.encode(payload).into();
    let told = Folder::new(&bundle.to_string(), P256).refusal();
    assert!(told.contains("what it states was changed"), "{told}");
    for (text, why) in
        [("{", "EOF"), ("{}", "mediaType"), (&SIGNED.replace("v0.3", "v9"), "media type")]
    {
        let told = Folder::new(text, P256).refusal();
        assert!(told.contains("is no signature of a model") && told.contains(why), "{told}");
    }
}

#[test]
fn identities_and_certificates_are_refused_by_name() {
    let material = |material: Value| {
        let mut bundle: Value = serde_json::from_str(SIGNED).unwrap();
        bundle["verificationMaterial"] = material;
        Folder::new(&bundle.to_string(), P256).refusal()
    };
    let certificate = json!({"rawBytes": "AA=="});
    assert!(material(json!({"certificate": certificate})).contains("an identity (Fulcio, Rekor)"));
    let chain = json!({"x509CertificateChain": {"certificates": [certificate]}});
    assert!(material(chain).contains("a chain of certificates"));
    assert!(material(json!({})).contains("it names no key"));
}

#[test]
fn what_is_no_key_is_wrong_usage() {
    let cut = P256.replace("MFkw", "");
    let x25519 = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VuAyEA\n-----END PUBLIC KEY-----\n";
    for (key, why) in [
        ("", "does not begin with"),
        (cut.as_str(), "neither P-256 nor P-384"),
        (x25519, "neither P-256 nor P-384"),
        (&P256.replace("MFk", "M!k"), "no base64"),
        (&format!("{P256}{P256}"), "base64"),
    ] {
        let folder = Folder::new(SIGNED, key);
        let told = folder.refusal();
        assert!(told.contains("is no public key") && told.contains(why), "{told}");
    }
}

/// A folder with a statement that its signer has made.
fn stated(statement: &Value) -> Folder {
    let random = SystemRandom::new();
    let algorithm = &ECDSA_P256_SHA256_ASN1_SIGNING;
    let pair = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
    let pair = EcdsaKeyPair::from_pkcs8(algorithm, pair.as_ref(), &random).unwrap();
    let der = STANDARD.decode(P256.lines().skip(1).take(2).collect::<String>()).unwrap();
    let der = [&der[..der.len() - 65], pair.public_key().as_ref()].concat();
    let key =
        format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----", STANDARD.encode(der));
    let payload = statement.to_string();
    let signature = pair.sign(&random, &pre_authentication_encoding(payload.as_bytes())).unwrap();
    let bundle = json!({
        "mediaType": MEDIA_TYPE,
        "verificationMaterial": {"publicKey": {}},
        "dsseEnvelope": {
            "payload": STANDARD.encode(payload),
            "payloadType": PAYLOAD_TYPE,
            "signatures": [{"sig": STANDARD.encode(signature.as_ref())}],
        },
    });
    Folder::new(&bundle.to_string(), &key)
}

/// What model-signing states of a folder with these files.
fn statement(files: &[(&str, &str)]) -> Value {
    let digits = |sum: &str| -> Vec<u8> {
        (0..32).map(|at| u8::from_str_radix(&sum[2 * at..2 * at + 2], 16).unwrap()).collect()
    };
    let root: Vec<u8> = files.iter().flat_map(|(_, sum)| digits(sum)).collect();
    let resource = |(name, digest): &(&str, &str)| json!({"name": name, "digest": digest, "algorithm": "sha256"});
    json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": "model", "digest": {"sha256": sha256(root)}}],
        "predicateType": "https://model_signing/signature/v1.0",
        "predicate": {
            "serialization": {"method": "files", "hash_type": "sha256", "allow_symlinks": true},
            "resources": files.iter().map(resource).collect::<Vec<_>>(),
        },
    })
}

#[test]
fn a_signed_statement_that_says_something_odd_is_refused() {
    let (config, part) = (sha256(CONFIG), sha256(PART));
    let sound = statement(&[("config.json", &config), ("sub/part.bin", &part)]);
    assert_eq!(stated(&sound).wrong(), []);
    let changed = |place: &str, value: Value| {
        let mut statement = sound.clone();
        *statement.pointer_mut(place).unwrap() = value;
        stated(&statement).refusal()
    };
    for (place, value, why) in [
        ("/subject/0/digest/sha256", json!(config), "sum of all files"),
        ("/subject", json!([]), "sum of all files"),
        ("/predicate/serialization/method", json!("shards"), "named by shards"),
        ("/predicate/serialization/hash_type", json!("blake2"), "with blake2"),
        ("/predicate/resources/0/algorithm", json!("blake3"), "with blake3"),
        ("/predicateType", json!("https://model_signing/Digests/v0.1"), "Digests/v0.1"),
        ("/_type", json!("https://in-toto.io/Statement/v0.1"), "is not verified here"),
        ("/predicate/resources/0/digest", json!("00"), "it names config.json with 00"),
        ("/predicate", json!(1), "invalid type"),
    ] {
        let told = changed(place, value);
        assert!(told.contains(why), "{place}: {told}");
    }
    let twice = statement(&[("config.json", &config), ("config.json", &config)]);
    assert!(stated(&twice).refusal().contains("it names config.json twice"));
    for outside in ["../key.pem", "/etc/passwd", ""] {
        let told = stated(&statement(&[(outside, &config)])).refusal();
        assert!(told.contains("it names"), "{told}");
    }
}
