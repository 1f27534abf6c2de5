use super::*;

#[test]
fn loopback_forwards_are_what_environments_need_and_the_operator_allows() {
    let shown = |options: &Options, resolvers: &str| {
        forwards(options, resolvers).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let plain = Options::default();
    assert_eq!(shown(&plain, "search example.com\nnameserver 10.0.0.53\n"), [""; 0]);
    let stub = ["tcp:127.0.0.53:53", "udp:127.0.0.53:53"];
    assert_eq!(shown(&plain, "# a stub\nnameserver 127.0.0.53\noptions edns0\n"), stub);
    assert_eq!(shown(&plain, ""), ["tcp:127.0.0.1:53", "udp:127.0.0.1:53"], "that is where it is looked for");
    assert_eq!(shown(&plain, "nameserver ::1"), ["tcp:[::1]:53", "udp:[::1]:53"]);
    let given = Options {
        database: AirflowDatabase::Server(Secret::new("postgres://a@localhost:5433/postgres".into())),
        broker: Broker::Given(Secret::new("redis://127.0.0.1".into())),
        loopback_ports: vec![4318, 5433],
        ..Options::default()
    };
    let all = ["tcp:127.0.0.1:4318", "tcp:127.0.0.1:5433", "tcp:127.0.0.1:6379"];
    assert_eq!(shown(&given, "nameserver 10.0.0.53"), all);
    let elsewhere = Options {
        database: AirflowDatabase::Server(Secret::new("postgres://a@[::1]:5434/postgres".into())),
        broker: Broker::Given(Secret::new("redis://127.0.0.2:6380".into())),
        ..Options::default()
    };
    assert_eq!(shown(&elsewhere, "nameserver 10.0.0.53"), ["tcp:127.0.0.2:6380", "tcp:[::1]:5434"]);
    for text in all.into_iter().chain(stub).chain(["tcp:[::1]:53"]) {
        assert_eq!(text.parse::<Forward>().unwrap().to_string(), text);
    }
    assert!("sctp:127.0.0.1:1".parse::<Forward>().is_err() && "tcp:here".parse::<Forward>().is_err());
}
