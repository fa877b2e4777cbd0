//! Kubernetes' quantities: `500m`, `2Gi`, `1e3`. The rules are those of resource.Quantity of
//! k8s.io/apimachinery, but that a number has a digit, and at most 19 of them.
//!
//! ```
//! use wasmproxy::quantity;
//!
//! assert_eq!(quantity::value("2Gi"), Ok(2 << 30));
//! assert_eq!(quantity::milli("1.5"), Ok(1500));
//! ```
//!
//! It does not write quantities, and does not know which resource has which unit.

use crate::{Error, Result};

/// A quantity in whole units, such as bytes. What is not whole is rounded away from zero. The
/// result is at most `i64::MAX`.
pub fn value(text: &str) -> Result<i64> {
    scaled(text, 0)
}

/// A quantity in thousandths, such as those of a CPU, rounded and limited as by [`value`].
pub fn milli(text: &str) -> Result<i64> {
    scaled(text, 3)
}

/// A number in digits with at most so many decimals, without a sign, a unit or an exponent, in
/// units of the last decimal: "1.25" with 4 is 12500. There are at most 18 decimals.
pub fn decimal(text: &str, decimals: usize) -> Result<i64> {
    let (whole, behind) = text.split_once('.').map_or((text, None), |(w, b)| (w, Some(b)));
    let digits = [whole, behind.unwrap_or("0")];
    let written = digits.iter().all(|d| !d.is_empty() && d.bytes().all(|c| c.is_ascii_digit()));
    let behind = behind.unwrap_or_default();
    let number =
        || decimals.checked_sub(behind.len()).and_then(|n| [whole, behind, &"0".repeat(n)].concat().parse().ok());
    written.then(number).flatten().ok_or_else(|| {
        Error::new(["\"", text, "\" is not a number with at most ", &decimals.to_string(), " decimals"].concat())
    })
}

#[cold]
fn wrong(text: &str, why: &str) -> Error {
    Error::new(["\"", text, "\" ", why].concat())
}

/// A quantity times a power of ten.
fn scaled(text: &str, power: i32) -> Result<i64> {
    let bytes = text.as_bytes();
    let unsigned = bytes.strip_prefix(b"-").or(bytes.strip_prefix(b"+")).unwrap_or(bytes);
    let (whole, mut rest) = digits(unsigned);
    let mut behind = &b""[..];
    if let [b'.', tail @ ..] = rest {
        (behind, rest) = digits(tail);
    }
    let Some((tens, twos)) = unit(rest).filter(|_| whole.len() + behind.len() > 0) else {
        return Err(wrong(text, "is not a quantity such as 500m, 2Gi or 1e3"));
    };
    while let [counting @ .., b'0'] = behind {
        behind = counting;
    }
    let number =
        whole.iter().chain(behind).try_fold(0_u64, |n, c| (n < 10_u64.pow(18)).then(|| 10 * n + u64::from(c - b'0')));
    let Some(number) = number.filter(|_| behind.len() <= 19) else {
        return Err(wrong(text, "has more than 19 digits"));
    };
    let value = scale(number, tens + power - behind.len() as i32, twos);
    Ok(if bytes.first() == Some(&b'-') { -value } else { value })
}

/// The digits that a text begins with, and the rest.
fn digits(text: &[u8]) -> (&[u8], &[u8]) {
    let n = text.iter().position(|c| !c.is_ascii_digit()).unwrap_or(text.len());
    text.split_at_checked(n).unwrap_or((text, b""))
}

/// The powers of ten and of two that a suffix stands for.
fn unit(suffix: &[u8]) -> Option<(i32, u32)> {
    Some(match suffix {
        b"" => (0, 0),
        b"n" => (-9, 0),
        b"u" => (-6, 0),
        b"m" => (-3, 0),
        b"k" => (3, 0),
        b"M" => (6, 0),
        b"G" => (9, 0),
        b"T" => (12, 0),
        b"P" => (15, 0),
        b"E" => (18, 0),
        b"Ki" => (0, 10),
        b"Mi" => (0, 20),
        b"Gi" => (0, 30),
        b"Ti" => (0, 40),
        b"Pi" => (0, 50),
        b"Ei" => (0, 60),
        [b'e' | b'E', exponent @ ..] => {
            (str::from_utf8(exponent).ok()?.parse::<i64>().ok()?.clamp(-100, 100) as i32, 0)
        }
        _ => return None,
    })
}

/// number × 10^tens × 2^twos, rounded up.
fn scale(mut number: u64, mut tens: i32, mut twos: u32) -> i64 {
    const MOST: u64 = i64::MAX as u64;
    let (mut divisor, mut rest) = (1, false);
    while tens > 0 {
        if number > MOST / 10 {
            return i64::MAX;
        }
        number *= 10;
        tens -= 1;
    }
    while tens < 0 {
        tens += 1;
        if twos > 0 {
            twos -= 1; // 2/10
            divisor *= 5;
        } else {
            rest |= !number.is_multiple_of(10);
            number /= 10;
        }
    }
    let (mut whole, mut part) = (number / divisor, number % divisor);
    for _ in 0..twos {
        (whole, part) = (whole.min(MOST) * 2, part * 2);
        if part >= divisor {
            (whole, part) = (whole + 1, part - divisor);
        }
    }
    let whole = whole.min(MOST) + u64::from(part > 0 || rest);
    whole.min(MOST) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test::value::Value;
    use crate::test::vectors;

    #[test]
    fn vectors() {
        let number = |v: &Value, key: &str| v.get(key).and_then(Value::as_i64).unwrap_or(0);
        let text = |v: &Value| v.get("text").and_then(Value::as_str).unwrap_or("").to_string();
        vectors::each("quantity", |v| {
            vectors::compare(v, &number(v, "value").to_string(), value(&text(v)).map(|n| n.to_string()));
            vectors::compare(v, &number(v, "milli").to_string(), milli(&text(v)).map(|n| n.to_string()));
        });
        vectors::each("decimal", |v| {
            let got = decimal(&text(v), number(v, "decimals") as usize);
            vectors::compare(v, &number(v, "value").to_string(), got.map(|n| n.to_string()));
        });
    }
}
