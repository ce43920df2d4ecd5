/** Its items one by one, with the weights that the user gave them. */
export async function myContainer(actual, expectedList, ctx, validate) {
  const weights = ctx.distribute(expectedList);
  const results = [];
  for (let i = 0; i < expectedList.length; i++) {
    const subCtx = ctx.createChildContext(i, expectedList.length);
    results.push(await validate(actual[i], expectedList[i], subCtx));
  }
  return ctx.aggregate(results, weights);
}

myContainer.virtual = true;
myContainer.strategy = "weighted";
