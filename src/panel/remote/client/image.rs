//! An image as a request sends it: a URL as it is, a file as a `data:` URL.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::diagnosis::Failure;
use crate::outside;
use crate::panel::PanelError;

const MOST_BYTES: u64 = 20 << 20;

/// The URL of an item's image, which is a path or a URL, for `image_url`.
pub fn url(image: &str) -> Result<String, PanelError> {
    if ["http://", "https://", "data:"].iter().any(|scheme| image.starts_with(scheme)) {
        return Ok(image.to_owned());
    }
    let path = Path::new(image);
    let fail = |reason: String| {
        let message = format!("the image {} cannot be sent: {reason}", path.display());
        PanelError::OfItem(Failure::refused(message))
    };
    let extension = path.extension().and_then(|extension| extension.to_str());
    let kind = match extension.unwrap_or_default().to_ascii_lowercase().as_str() {
        "jpg" | "jpeg" => "jpeg",
        "png" => "png",
        "webp" => "webp",
        "gif" => "gif",
        _ => return Err(fail("it is no .png, .jpg, .jpeg, .webp or .gif".to_owned())),
    };
    // Whoever wrote the items named it.
    let bytes = outside::bytes_beside(path, MOST_BYTES).map_err(|error| fail(error.to_string()))?;
    Ok(format!("data:image/{kind};base64,{}", STANDARD.encode(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_becomes_a_data_url_and_an_address_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("scan.PNG");
        fs_err::write(&path, b"\x89PNG!").unwrap();
        assert_eq!(url(path.to_str().unwrap()).unwrap(), "data:image/png;base64,iVBORyE=");
        let link = folder.path().join("link.png");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(url(link.to_str().unwrap()).unwrap_err().to_string().contains("it is a link"));
        for kept in ["https://host/scan", "data:image/png;base64,AA=="] {
            assert_eq!(url(kept).unwrap(), kept);
        }
    }

    #[test]
    fn what_is_no_image_costs_its_item() {
        for image in ["/nowhere/scan.png", "notes.txt", "scan"] {
            let error = url(image).unwrap_err();
            assert!(error.concerns_item() && error.to_string().contains(image), "{error}");
        }
    }
}
