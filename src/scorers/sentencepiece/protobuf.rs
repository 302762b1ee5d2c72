//! The fields of a protocol buffer's message, one after another: as much of the format as SentencePiece models need.

/// One field's value, by its wire type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value<'a> {
    Number(u64),
    /// Four bytes, a float among them.
    Four([u8; 4]),
    /// Text, bytes, or a message of its own.
    Bytes(&'a [u8]),
    Eight,
}

/// `(field number, value)` in the order of the message; ends with an error where the bytes are no message.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Value<'a>), &'static str>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.0 = &[];
        }
        Some(field.ok_or("it is cut short or no protocol buffer"))
    }
}

impl<'a> Fields<'a> {
    fn field(&mut self) -> Option<(u64, Value<'a>)> {
        let tag = self.number()?;
        let value = match tag & 7 {
            0 => Value::Number(self.number()?),
            1 => {
                self.take(8)?;
                Value::Eight
            }
            2 => {
                let length = self.number()?;
                Value::Bytes(self.take(usize::try_from(length).ok()?)?)
            }
            5 => Value::Four(self.take(4)?.try_into().ok()?),
            _ => return None,
        };
        Some((tag >> 3, value))
    }

    /// Seven bits a byte, the lowest first; the eighth says that more follow.
    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wire_type_is_read_and_a_cut_message_is_an_error() {
        let message = b"\x08\x96\x01\x12\x02hi\x1d\x00\x00\x80\x3f\x21abcdefgh";
        let fields: Vec<_> = Fields(message).map(Result::unwrap).collect();
        let expected = [
            (1, Value::Number(150)),
            (2, Value::Bytes(b"hi")),
            (3, Value::Four(1.0_f32.to_le_bytes())),
            (4, Value::Eight),
        ];
        assert_eq!(fields, expected);
        for length in [1, 2, 5, 10, message.len() - 1] {
            let last = Fields(&message[..length]).last().unwrap();
            assert!(last.is_err(), "{length}");
        }
        // A number without an end, and a wire type that is no longer in use.
        assert!(Fields(&[0xff; 12]).next().unwrap().is_err());
        assert!(Fields(b"\x0b").next().unwrap().is_err());
    }
}
