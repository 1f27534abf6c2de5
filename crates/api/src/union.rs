//! Requests with variants: one struct with every field, and for each variant the fields that it lacks.
//!
//! A field is declared once, in the struct. The document shows one schema for each variant and the tag that
//! distinguishes them; requests are checked against the variant that their tag names.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::decode::{MAY_LACK_TAG, SIBLINGS};

/// A request with variants.
pub trait Union: JsonSchema {
    /// The wire name of the field that names the variant.
    const TAG: &'static str;
    /// The variants.
    const VARIANTS: &'static [Variant];
    /// Whether it is accepted without its tag although the document requires it.
    const MAY_LACK_TAG: bool = false;
}

/// A variant of a request.
pub struct Variant {
    /// The value of the tag.
    pub word: &'static str,
    /// The name of its schema.
    pub name: &'static str,
    /// Wire names of the fields that it lacks.
    pub without: &'static [&'static str],
    /// Wire names of the fields that it requires beyond those that all require.
    pub required: &'static [&'static str],
    /// Fields with a different schema in it.
    pub fields: FieldsOf,
}

/// Makes the schemas of some fields.
pub type FieldsOf = fn(&mut SchemaGenerator) -> Vec<(&'static str, Schema)>;

/// No field has a different schema.
pub fn no_fields(_: &mut SchemaGenerator) -> Vec<(&'static str, Schema)> {
    Vec::new()
}

/// The body of a request with variants.
#[derive(Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OneOf<T>(pub T);

impl<T: Union> JsonSchema for OneOf<T> {
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let all = T::json_schema(generator).to_value();
        let (mut options, mut mapping) = (Vec::new(), Map::new());
        for variant in T::VARIANTS {
            let words: Vec<&str> = T::VARIANTS.iter().map(|variant| variant.word).collect();
            let schema = variant.narrow(all.clone(), (T::TAG, &words), generator);
            generator.definitions_mut().insert(variant.name.into(), schema);
            let reference = format!("#/components/schemas/{}", variant.name);
            options.push(json!({ "$ref": reference }));
            mapping.insert(variant.word.into(), reference.into());
        }
        let discriminator = json!({ "propertyName": T::TAG, "mapping": mapping });
        let mut schema = json_schema!({ "type": "object", "oneOf": options, "discriminator": discriminator });
        if T::MAY_LACK_TAG {
            schema.insert(MAY_LACK_TAG.into(), true.into());
        }
        schema
    }
}

impl Variant {
    /// The schema of all variants, reduced to this one.
    fn narrow(&self, schema: Value, (tag, words): (&str, &[&str]), generator: &mut SchemaGenerator) -> Value {
        let mut schema = narrow(schema, self.without, self.required);
        if let Some(fields) = schema["properties"].as_object_mut() {
            for (name, schema) in (self.fields)(generator) {
                fields.insert(name.into(), schema.to_value());
            }
            if let Some(tag) = fields.get_mut(tag) {
                let about = tag.get("description").cloned().unwrap_or_default();
                *tag = json!({ "type": "string", "enum": words, "const": self.word, "description": about });
            }
        }
        schema
    }
}

/// A schema that lacks some fields of `T` and requires others, under its own name.
pub(crate) fn narrowed<T: JsonSchema>(
    generator: &mut SchemaGenerator,
    name: &str,
    without: &[&str],
    required: &[&str],
) -> Schema {
    let mut schema = narrow(T::json_schema(generator).to_value(), without, required);
    if !without.is_empty() {
        schema[SIBLINGS] = without.into();
    }
    generator.definitions_mut().insert(name.into(), schema);
    json_schema!({ "$ref": format!("#/components/schemas/{name}") })
}

fn narrow(mut schema: Value, without: &[&str], required: &[&str]) -> Value {
    if let Some(fields) = schema["properties"].as_object_mut() {
        fields.retain(|name, _| !without.contains(&name.as_str()));
    }
    let all = schema["required"].as_array().cloned().unwrap_or_default();
    let more = required.iter().map(|name| Value::from(*name));
    schema["required"] = all.into_iter().chain(more).collect();
    schema
}
