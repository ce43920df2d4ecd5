export default function (actual, expected) {
  return actual.length <= expected;
}
