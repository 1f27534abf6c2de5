//! Values on the wire, encoded as the parameter type that the server reports.

use bytes::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, WrongType, to_sql_checked};

use crate::{Result, Value};

type Failure = Box<dyn std::error::Error + Sync + Send>;

impl ToSql for Value<'_> {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Failure> {
        match *self {
            Value::Null => Ok(IsNull::Yes),
            Value::Int(value) => number(value, kind, out),
            Value::Bool(value) if *kind == Type::BOOL => value.to_sql(kind, out),
            Value::Bool(value) => number(value.into(), kind, out),
            Value::Text(value) if <&str as ToSql>::accepts(kind) => value.to_sql(kind, out),
            Value::Text(_) => Err(wrong::<&str>(kind)),
            Value::Blob(value) if *kind == Type::BYTEA => value.to_sql(kind, out),
            Value::Blob(_) => Err(wrong::<&[u8]>(kind)),
            Value::Texts(list) if *kind == Type::TEXT_ARRAY => list.to_sql(kind, out),
            Value::Strings(list) if *kind == Type::TEXT_ARRAY => list.to_sql(kind, out),
            Value::Texts(_) | Value::Strings(_) => Err(wrong::<&[String]>(kind)),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

fn number(value: i64, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Failure> {
    match *kind {
        Type::INT8 => value.to_sql(kind, out),
        Type::INT4 => i32::try_from(value)?.to_sql(kind, out),
        Type::INT2 => i16::try_from(value)?.to_sql(kind, out),
        Type::BOOL if value == 0 || value == 1 => (value == 1).to_sql(kind, out),
        _ => Err(wrong::<i64>(kind)),
    }
}

fn wrong<T>(kind: &Type) -> Failure {
    Box::new(WrongType::new::<T>(kind.clone()))
}

impl<'r> FromSql<'r> for Value<'r> {
    fn from_sql(kind: &Type, raw: &'r [u8]) -> Result<Self, Failure> {
        match *kind {
            Type::INT8 => i64::from_sql(kind, raw).map(Self::Int),
            Type::INT4 => i32::from_sql(kind, raw).map(|value| Self::Int(value.into())),
            Type::INT2 => i16::from_sql(kind, raw).map(|value| Self::Int(value.into())),
            Type::BOOL => bool::from_sql(kind, raw).map(Self::Bool),
            Type::BYTEA => Ok(Self::Blob(raw)),
            _ if <&str as FromSql>::accepts(kind) => <&str>::from_sql(kind, raw).map(Self::Text),
            _ => Err(wrong::<Value<'_>>(kind)),
        }
    }

    fn from_sql_null(_: &Type) -> Result<Self, Failure> {
        Ok(Self::Null)
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}
