/** Its items one by one, with the weights that the user gave them. */
export async function myContainer(actual, expected, ctx, validate) {
  const found = [];
  for (const [at, item] of expected.entries()) {
    found.push(await validate(actual[at], item, ctx.createChildContext(at, expected.length)));
  }
  return ctx.aggregate(found, ctx.distribute(expected));
}

myContainer.virtual = true;
myContainer.strategy = "weighted";
