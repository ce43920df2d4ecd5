#[test]
fn write() {
    std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/assertions.md"), trialrun_grade::reference()).unwrap();
}
