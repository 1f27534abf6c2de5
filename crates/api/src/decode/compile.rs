//! Compiles schemas for checking. A keyword that is not supported is an error rather than ignored: a bound that is
//! documented but not checked would accept anything.

use std::fmt;

use serde_json::{Map, Value};

use super::{Check, Field, Format, LONG_TEXTS, MAY_BE_EMPTY, MAY_LACK_TAG, SIBLINGS};

/// Annotations, which do not affect validity.
const ANNOTATIONS: &[&str] = &["title", "description", "default", "examples", "deprecated"];

/// A schema uses something that cannot be checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsupportedSchema {
    at: String,
    what: String,
}

impl fmt::Display for UnsupportedSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the schema of `{}` cannot be checked: {}", self.at, self.what)
    }
}

impl std::error::Error for UnsupportedSchema {}

type Result<T> = std::result::Result<T, UnsupportedSchema>;

impl Check {
    /// Compiles a schema; `schemas` holds the schemas that it refers to.
    pub fn compile(schema: &Value, schemas: &Map<String, Value>) -> Result<Self> {
        Ok(Part { schema, schemas, at: "" }.field()?.0)
    }

    /// The same for the schema of a query, which is that of an object.
    pub fn compile_query(schema: &Value, schemas: &Map<String, Value>) -> Result<Self> {
        let part = Part { schema, schemas, at: "" };
        match part.field()?.0 {
            query @ Self::Object(_) => Ok(query),
            other => part.wrong(format!("a query must be an object, but this is {}", other.describe())),
        }
    }
}

/// A part of a schema, and where it is.
struct Part<'a> {
    schema: &'a Value,
    schemas: &'a Map<String, Value>,
    at: &'a str,
}

impl<'a> Part<'a> {
    fn wrong<T>(&self, what: impl Into<String>) -> Result<T> {
        Err(UnsupportedSchema { at: self.at.to_owned(), what: what.into() })
    }

    fn check(&self, schema: &'a Value, below: &str) -> Result<Check> {
        let at = format!("{}{below}", self.at);
        Ok(Part { schema, schemas: self.schemas, at: &at }.field()?.0)
    }

    /// The check, and whether `null` has a meaning of its own.
    fn field(&self) -> Result<(Check, bool)> {
        let Some(object) = self.schema.as_object() else {
            return self.wrong(format!("it is not an object: {}", self.schema));
        };
        if object.contains_key("$ref") {
            self.has_only(object, &["$ref"])?;
            return Part { schema: self.referred(&object["$ref"])?, ..*self }.field();
        }
        if let Some(options) = object.get("anyOf") {
            self.has_only(object, &["anyOf"])?;
            let options = options.as_array().map_or(&[][..], Vec::as_slice);
            return match options {
                [real, null] if null["type"] == "null" => Ok((self.check(real, "")?, true)),
                _ => self.wrong("`anyOf` is supported only for one schema and null"),
            };
        }
        if object.contains_key("discriminator") {
            return Ok((self.union(object)?, false));
        }
        let check = match object.get("type").and_then(Value::as_str) {
            Some("string") => self.text(object)?,
            Some("integer") => {
                self.has_only(object, &["type", "minimum", "maximum", "format"])?;
                self.one_of(object, "format", &["int64"])?;
                let bound = |key| self.value(object, key, Value::as_i64);
                Check::Integer { min: bound("minimum")?, max: bound("maximum")? }
            }
            Some("boolean") => {
                self.has_only(object, &["type"])?;
                Check::Boolean
            }
            Some("array") => {
                self.has_only(object, &["type", "items", "minItems", "maxItems", MAY_BE_EMPTY])?;
                Check::List {
                    items: Box::new(self.check(&self.schema["items"], "[]")?),
                    min: self.value(object, "minItems", Value::as_u64)?,
                    max: self.value(object, "maxItems", Value::as_u64)?,
                    may_be_empty: object.get(MAY_BE_EMPTY).is_some_and(|mark| *mark == true),
                }
            }
            Some("object") if self.schema["additionalProperties"].is_object() => {
                self.has_only(object, &["type", "additionalProperties"])?;
                Check::Map(Box::new(self.check(&self.schema["additionalProperties"], ".*")?))
            }
            Some("object") => Check::Object(self.fields()?),
            _ => return self.wrong(format!("its type is not supported: {}", self.schema["type"])),
        };
        Ok((check, false))
    }

    fn text(&self, object: &Map<String, Value>) -> Result<Check> {
        self.has_only(object, &["type", "minLength", "maxLength", "enum", "const", "format"])?;
        let words = match object.get("enum").map(Value::as_array) {
            None => None,
            Some(words) => {
                let words = words.into_iter().flatten().map(Value::as_str);
                match words.map(|word| word.map(str::to_owned)).collect::<Option<Vec<_>>>() {
                    Some(words) if !words.is_empty() => Some(words),
                    _ => return self.wrong("`enum` is a list of texts"),
                }
            }
        };
        // The word of a union's tag: whoever has another one is of another variant.
        if object.contains_key("const") && words.is_none() {
            return self.wrong("`const` is supported only together with `enum`");
        }
        self.one_of(object, "format", &["cuid", "date-time", "password"])?;
        let format = match object.get("format").and_then(Value::as_str) {
            Some("cuid") => Format::Id,
            Some("date-time") => Format::Time,
            Some("password") => Format::Secret,
            _ => Format::Line,
        };
        let (min, max) = ("minLength", "maxLength");
        let (min, max) = (self.value(object, min, Value::as_u64)?, self.value(object, max, Value::as_u64)?);
        Ok(Check::Text { min, max, words, format })
    }

    fn union(&self, object: &'a Map<String, Value>) -> Result<Check> {
        self.has_only(object, &["type", "oneOf", "discriminator", MAY_LACK_TAG])?;
        let discriminator = &object["discriminator"];
        let (tag, mapping) = (discriminator["propertyName"].as_str(), discriminator["mapping"].as_object());
        let (Some(tag), Some(mapping)) = (tag, mapping) else {
            return self.wrong("a discriminator needs a name and a mapping");
        };
        let options = object.get("oneOf").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let is_mapped = |option: &Value| mapping.values().any(|name| *name == option["$ref"]);
        if options.len() != mapping.len() || !options.iter().all(is_mapped) {
            return self.wrong("`oneOf` and the mapping of its discriminator differ");
        }
        let may_lack_tag = object.get(MAY_LACK_TAG).is_some_and(|mark| *mark == true);
        let variant = |(word, name): (&String, &'a Value)| {
            let at = format!("{}({word})", self.at);
            let mut fields =
                Part { schema: self.referred(name)?, schemas: self.schemas, at: &at }.fields()?;
            let is_tag = |field: &&mut Field| field.name == tag && may_lack_tag;
            fields.iter_mut().filter(is_tag).for_each(|field| field.required = false);
            Ok((word.clone(), fields))
        };
        let variants = mapping.iter().map(variant).collect::<Result<_>>()?;
        Ok(Check::Union { tag: tag.to_owned(), variants })
    }

    /// The fields of an object, and those of its siblings.
    fn fields(&self) -> Result<Vec<Field>> {
        let Some(object) = self.schema.as_object() else { return self.wrong("it is not an object") };
        self.has_only(object, &["type", "properties", "required", "additionalProperties", SIBLINGS])?;
        if object.get("additionalProperties").is_some_and(|more| *more != true) {
            return self.wrong("`additionalProperties` is supported only as a schema or as `true`");
        }
        let names = |key: &str| -> Result<Vec<&'a str>> {
            let list = object.get(key).map(|list| list.as_array().map(|list| list.iter().map(Value::as_str)));
            match list {
                None => Ok(Vec::new()),
                Some(Some(list)) => {
                    list.collect::<Option<_>>().map_or_else(|| self.wrong(format!("`{key}` is not text")), Ok)
                }
                Some(None) => self.wrong(format!("`{key}` is not a list")),
            }
        };
        let (required, siblings) = (names("required")?, names(SIBLINGS)?);
        let mut fields = Vec::new();
        for (name, schema) in object.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let at = if self.at.is_empty() { name.clone() } else { format!("{}.{name}", self.at) };
            let (mut check, clearable) = Part { schema, schemas: self.schemas, at: &at }.field()?;
            if let Check::Text { format: format @ Format::Line, .. } = &mut check
                && LONG_TEXTS.contains(&name.as_str())
            {
                *format = Format::Any;
            }
            let required = required.contains(&name.as_str());
            fields.push(Field { name: name.clone(), required, clearable, check });
        }
        if let Some(name) = required.iter().find(|name| !fields.iter().any(|field| field.name == **name)) {
            return self.wrong(format!("`{name}` is required but not among the properties"));
        }
        let sibling = |name: &str| {
            let (name, check) = (name.to_owned(), Check::Sibling);
            Field { name, required: false, clearable: false, check }
        };
        fields.extend(siblings.into_iter().map(sibling));
        Ok(fields)
    }

    /// What a reference leads to.
    fn referred(&self, reference: &Value) -> Result<&'a Value> {
        let name = reference.as_str().and_then(|reference| reference.rsplit('/').next());
        match name.and_then(|name| self.schemas.get(name)) {
            Some(schema) => Ok(schema),
            None => self.wrong(format!("there is nothing at {reference}")),
        }
    }

    /// Fails where a schema has a keyword that is neither one of these nor an annotation.
    fn has_only(&self, object: &Map<String, Value>, known: &[&str]) -> Result<()> {
        let unknown = object.keys().find(|key| {
            let key = key.as_str();
            !known.contains(&key) && !ANNOTATIONS.contains(&key)
        });
        match unknown {
            Some(keyword) => self.wrong(format!("the keyword `{keyword}` is not supported")),
            None => Ok(()),
        }
    }

    /// Fails where a keyword has a value that is none of these.
    fn one_of(&self, object: &Map<String, Value>, key: &str, known: &[&str]) -> Result<()> {
        match object.get(key) {
            Some(value) if !value.as_str().is_some_and(|value| known.contains(&value)) => {
                self.wrong(format!("`{key}` is not supported as {value}"))
            }
            _ => Ok(()),
        }
    }

    /// The number at a keyword, if it is there.
    fn value<T>(
        &self,
        object: &Map<String, Value>,
        key: &str,
        read: fn(&Value) -> Option<T>,
    ) -> Result<Option<T>> {
        match object.get(key).map(|value| (value, read(value))) {
            None => Ok(None),
            Some((_, Some(number))) => Ok(Some(number)),
            Some((value, None)) => self.wrong(format!("`{key}` is not supported as {value}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ENDPOINTS;
    use crate::openapi::Document;

    /// What is said of a schema inside of another.
    fn in_field(schema: &Value) -> std::result::Result<(), String> {
        let schemas = json!({ "Name": { "type": "string", "maxLength": 5 } });
        let outer = json!({ "type": "object", "properties": { "a": { "type": "array", "items": schema } } });
        let checked = Check::compile(&outer, schemas.as_object().unwrap());
        checked.map(drop).map_err(|error| error.to_string())
    }

    #[test]
    fn every_request_of_the_api_can_be_checked() {
        let document = Document::collect();
        for (endpoint, schemas) in ENDPOINTS.iter().zip(&document.endpoints) {
            let query = schemas.query.as_ref().map(|query| Check::compile_query(query, &document.schemas));
            let body = schemas.body.as_ref().map(|body| Check::compile(body, &document.schemas));
            for checked in query.into_iter().chain(body) {
                assert_eq!(checked.err(), None, "{}", endpoint.id);
            }
        }
    }

    #[test]
    fn unsupported_schemas_are_errors() {
        for (schema, why) in [
            (json!({ "type": "string", "pattern": "^a" }), "the keyword `pattern` is not supported"),
            (json!({ "type": "string", "format": "email" }), "`format` is not supported as \"email\""),
            (json!({ "type": "string", "maxLength": -1 }), "`maxLength` is not supported as -1"),
            (json!({ "type": "string", "enum": ["a", 1] }), "`enum` is a list of texts"),
            (json!({ "type": "string", "const": "a" }), "`const` is supported only together with `enum`"),
            (json!({ "type": "integer", "multipleOf": 2 }), "the keyword `multipleOf` is not supported"),
            (json!({ "type": "integer", "minimum": 0.5 }), "`minimum` is not supported as 0.5"),
            (json!({ "type": "integer", "format": "int32" }), "`format` is not supported as \"int32\""),
            (json!({ "type": "boolean", "enum": [true] }), "the keyword `enum` is not supported"),
            (json!({ "type": "array", "items": {}, "uniqueItems": true }), "`uniqueItems` is not supported"),
            (json!({ "type": "array" }), "it is not an object: null"),
            (json!({ "type": "object", "minProperties": 1 }), "the keyword `minProperties` is not supported"),
            (json!({ "type": "object", "additionalProperties": false }), "only as a schema or as `true`"),
            (json!({ "type": "object", "required": ["b"] }), "`b` is required but not among the properties"),
            (json!({ "type": "number" }), "its type is not supported: \"number\""),
            (json!({ "type": ["string", "integer"] }), "its type is not supported"),
            (json!({}), "its type is not supported: null"),
            (json!(true), "it is not an object: true"),
            (json!({ "$ref": "#/components/schemas/Nobody" }), "there is nothing at"),
            (json!({ "$ref": "#/components/schemas/Name", "minLength": 1 }), "`minLength` is not supported"),
            (json!({ "anyOf": [{ "type": "string" }, { "type": "integer" }] }), "for one schema and null"),
            (json!({ "allOf": [{ "type": "string" }] }), "its type is not supported: null"),
            (json!({ "oneOf": [], "discriminator": {} }), "a discriminator needs a name and a mapping"),
        ] {
            let said = in_field(&schema).expect_err(&schema.to_string());
            assert!(said.contains(why), "{schema}: {said}");
            assert!(said.contains("`a[]"), "it says where: {said}");
        }
    }

    #[test]
    fn annotations_change_nothing() {
        let described = json!({ "$ref": "#/components/schemas/Name", "description": "Its name." });
        assert_eq!(in_field(&described), Ok(()));
        assert_eq!(in_field(&json!({ "type": "boolean", "title": "A", "default": true })), Ok(()));
    }

    #[test]
    fn a_query_is_an_object() {
        let list = json!({ "type": "array", "items": { "type": "string" } });
        assert!(Check::compile_query(&list, &Map::new()).is_err());
    }
}
