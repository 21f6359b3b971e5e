//! From a tree to typed values, by serde, with errors that name field, line, value and what is allowed.

use crate::error::{nearest, InputError, Place};
use crate::tree::{Located, Value};
use serde::de::{self, value::StrDeserializer, Deserialize, DeserializeSeed, Expected, IntoDeserializer, Unexpected, Visitor};
use std::collections::btree_map;
use std::fmt;

/// The value that `node` stands for; the error names the place in the file, what was found and what is allowed.
pub fn decode<'de, T: Deserialize<'de>>(node: &'de Located) -> Result<T, InputError> {
    T::deserialize(node).map_err(|fault| fault.0)
}

/// An [`InputError`] in the making: the way up the tree completes its field and place.
#[derive(Debug)]
pub struct Fault(InputError);

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Fault {}

impl Fault {
    fn below(mut self, step: &str, node: &Located) -> Self {
        let glue = if self.0.field.is_empty() || self.0.field.starts_with('[') { "" } else { "." };
        self.0.field = format!("{step}{glue}{}", self.0.field);
        if self.0.place == Place::default() {
            self.0.place = node.place.clone();
        }
        self
    }
}

impl de::Error for Fault {
    fn custom<T: fmt::Display>(problem: T) -> Self {
        Self(InputError::new(problem.to_string()))
    }

    fn invalid_type(found: Unexpected<'_>, allowed: &dyn Expected) -> Self {
        Self::invalid_value(found, allowed)
    }

    fn invalid_value(found: Unexpected<'_>, allowed: &dyn Expected) -> Self {
        Self(InputError { found: Some(show(found)), allowed: Some(plain(&allowed.to_string())), ..InputError::default() })
    }

    fn invalid_length(found: usize, allowed: &dyn Expected) -> Self {
        Self(InputError {
            found: Some(format!("{found} values")),
            allowed: Some(plain(&allowed.to_string())),
            ..InputError::default()
        })
    }

    fn unknown_variant(found: &str, allowed: &'static [&'static str]) -> Self {
        let near = nearest(found, allowed.iter().copied());
        Self(InputError { found: Some(format!("\"{found}\"")), ..InputError::default() }.nearest(near).alternatives(allowed))
    }

    fn unknown_field(found: &str, allowed: &'static [&'static str]) -> Self {
        let near = nearest(found, allowed.iter().copied());
        Self(InputError::new("unknown field").nearest(near).alternatives(allowed))
    }

    fn missing_field(field: &'static str) -> Self {
        Self(InputError::new("missing").at(field))
    }
}

impl InputError {
    fn alternatives(self, names: &[&str]) -> Self {
        self.allowed(names.join(", "))
    }
}

fn show(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Str(text) => format!("\"{text}\""),
        Unexpected::Bool(flag) => flag.to_string(),
        Unexpected::Unsigned(number) => number.to_string(),
        Unexpected::Signed(number) => number.to_string(),
        Unexpected::Float(number) => format!("{number:?}"),
        Unexpected::Map => "a table".to_owned(),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Option | Unexpected::Unit => "nothing".to_owned(),
        other => other.to_string(),
    }
}

/// Rust's names for what is expected, in words.
fn plain(expected: &str) -> String {
    match expected {
        "u8" => "a whole number from 0 to 255".to_owned(),
        "u16" => "a whole number from 0 to 65535".to_owned(),
        "u32" => format!("a whole number from 0 to {}", u32::MAX),
        "u64" | "usize" => "a whole number, not negative".to_owned(),
        "f64" => "a number".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a string" => "a string".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a map" => "a table".to_owned(),
        other => other.strip_prefix("struct ").map_or_else(|| other.to_owned(), |_| "a table".to_owned()),
    }
}

impl<'de> de::Deserializer<'de> for &'de Located {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(flag) => visitor.visit_bool(*flag),
            Value::Integer(number) => match u64::try_from(*number) {
                Ok(number) => visitor.visit_u64(number),
                Err(_) => visitor.visit_i64(*number),
            },
            Value::Float(number) => visitor.visit_f64(*number),
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Array(items) => {
                let mut list = Items { items, position: 0 };
                visitor.visit_seq(&mut list).and_then(|value| {
                    let taken = list.position;
                    let wanted = format!("{taken} value{}", if taken == 1 { "" } else { "s" });
                    if taken == items.len() {
                        Ok(value)
                    } else {
                        Err(de::Error::invalid_length(items.len(), &wanted.as_str()))
                    }
                })
            }
            Value::Table(fields) => visitor.visit_map(Fields { fields: fields.iter(), current: None }),
        }
        .map_err(|mut fault| {
            if fault.0.place == Place::default() {
                fault.0.place = self.place.clone();
            }
            // A list or table that was not expected says what is in it.
            if matches!(fault.0.found.as_deref(), Some("a table" | "a list")) && fault.0.field.is_empty() {
                fault.0.found = Some(self.value.found());
            }
            fault
        })
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _name: &'static str, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let result = match &self.value {
            Value::String(name) => visitor.visit_enum(Choice { name, content: None }),
            Value::Table(fields) if fields.len() == 1 => {
                let (name, content) = fields.iter().next().expect("one field");
                visitor.visit_enum(Choice { name, content: Some(content) })
            }
            other => Err(Fault(InputError { found: Some(other.found()), ..InputError::default() }.alternatives(variants))),
        };
        result.map_err(|mut fault| {
            if fault.0.place == Place::default() {
                fault.0.place = self.place.clone();
            }
            fault
        })
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map
        struct identifier ignored_any
    }
}

struct Items<'de> {
    items: &'de [Located],
    position: usize,
}

impl<'de> de::SeqAccess<'de> for &mut Items<'de> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        let Some(item) = self.items.get(self.position) else { return Ok(None) };
        let index = self.position;
        self.position += 1;
        seed.deserialize(item).map(Some).map_err(|fault| fault.below(&format!("[{index}]"), item))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len() - self.position)
    }
}

struct Fields<'de> {
    fields: btree_map::Iter<'de, String, Located>,
    current: Option<(&'de str, &'de Located)>,
}

impl<'de> de::MapAccess<'de> for Fields<'de> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        // A null is as if the field were not there.
        let Some((name, node)) = self.fields.find(|(_, node)| node.value != Value::Null) else { return Ok(None) };
        self.current = Some((name, node));
        let key: StrDeserializer<'_, Fault> = name.as_str().into_deserializer();
        seed.deserialize(key).map(Some).map_err(|fault| fault.below(name, node))
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Fault> {
        let (name, node) = self.current.take().expect("a value follows its key");
        seed.deserialize(node).map_err(|fault| fault.below(name, node))
    }
}

struct Choice<'de> {
    name: &'de str,
    content: Option<&'de Located>,
}

impl<'de> de::EnumAccess<'de> for Choice<'de> {
    type Error = Fault;
    type Variant = Self;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, Self), Fault> {
        let name: StrDeserializer<'_, Fault> = self.name.into_deserializer();
        Ok((seed.deserialize(name)?, self))
    }
}

impl<'de> de::VariantAccess<'de> for Choice<'de> {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        match self.content {
            None => Ok(()),
            Some(content) => Err(Fault(InputError::new(format!("`{}` takes no value", self.name)).found(content.value.found()))),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Fault> {
        let name = self.name;
        let content = self
            .content
            .ok_or_else(|| Fault(InputError::new(format!("`{name}` needs a value")).allowed(format!("{{ {name} = … }}"))))?;
        seed.deserialize(content).map_err(|fault| fault.below(name, content))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _len: usize, _visitor: V) -> Result<V::Value, Fault> {
        Err(de::Error::custom("the scenario format has no tuples"))
    }

    fn struct_variant<V: Visitor<'de>>(self, _fields: &'static [&'static str], visitor: V) -> Result<V::Value, Fault> {
        let name = self.name;
        let content = self.content.ok_or_else(|| Fault(InputError::new(format!("`{name}` needs fields"))))?;
        de::Deserializer::deserialize_any(content, visitor).map_err(|fault| fault.below(name, content))
    }
}
